"""`minifuse merge`: merge the files of a sharded checkpoint into one safetensors file."""

from pathlib import Path

from rich.markup import escape

from ..core.errors import MinifuseError
from ..tensors.sharded_checkpoint import merge_files
from .output import new_console, print_json, report_error


def run(folder: Path, file: Path, json: bool) -> int:
    """Merge and print what was written; return 1 if the checkpoint cannot be read, or the file cannot be written."""
    try:
        index = merge_files("merge_shards", folder, file)
    except MinifuseError as error:
        return report_error("merge", error, 1)
    nbytes = file.stat().st_size
    if json:
        facts = {"file": str(file), "version": index.version, "ranks": len(index.files), "tensors": len(index)}
        print_json({**facts, "bytes": nbytes})
    else:
        summary = f"{file}: {len(index)} tensors, {nbytes:,} bytes, of {len(index.files)} ranks"
        new_console().print(escape(summary), soft_wrap=True)
    return 0
