"""`minifuse launch`: what ranks print, and what happens when one fails, is killed, ends early, or asks for other things."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from minifuse.cli import launch as launcher
from minifuse.cli.files import RequestError
from minifuse.core.errors import DistributedError
from minifuse.engines.environment import Place, parse_mesh
from tests.engines.launching import command, environment, launch, run, write
from tests.sources import ROOT

WITHIN_SECONDS = 8.0  # from a fault to the end of the launcher, also on a busy machine; test_planted.py asks for 2
START = """
import os, pathlib, signal, sys, time
import minifuse as mf
import minifuse.distributed as dist
dist.init()
rank, size = dist.rank(), dist.size()
def fault():
    pathlib.Path("stamp").touch()
x = mf.ones(3, 5)
dist.all_reduce(x)
"""


both_engines = pytest.mark.parametrize("engine", ["shared", pytest.param("mpi", marks=pytest.mark.thorough)])


@pytest.fixture(autouse=True)
def _has_engine(request):
    if "mpi" in request.node.name:
        pytest.importorskip("mpi4py", reason='needs MPI: pip install "minifuse[mpi]"')


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=20.0):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.02)


def test_each_rank_prints_with_its_number_and_the_first_without(tmp_path):
    text = """
        import sys
        import minifuse as mf
        import minifuse.distributed as dist
        print(dist.init(), sys.argv[1:])
        print(f"rank {dist.rank()}: {dist.all_reduce(mf.ones(2) * dist.rank()).tolist()}", file=sys.stderr)
    """
    done = launch(tmp_path, text, "--lr", "0.1", options=["--mesh", "data=1,model=2"])
    assert done.code == 0, done.err
    line = "Mesh(data=1, model=2) ['--lr', '0.1']"
    assert sorted(done.out.splitlines()) == sorted([line, f"[1] {line}"])
    assert "rank 0: [1.0, 1.0]" in done.err.splitlines()
    assert "[1] rank 1: [1.0, 1.0]" in done.err.splitlines()


@both_engines
def test_the_traceback_of_a_rank_is_last_and_all_stop(tmp_path, engine):
    text = START + (
        "def step():\n    raise ValueError('no such batch')\nif rank == 1:\n    fault()\n    step()\ndist.all_reduce(x)\n"
    )
    done = launch(tmp_path, text, engine=engine)
    assert done.code == 1
    assert "minifuse launch: rank 1 of 2 failed; all were stopped" in done.err
    assert done.err.rstrip().endswith("ValueError: no such batch")
    assert 'script.py", line' in done.err
    assert "start_rank" not in done.err
    assert "BAD TERMINATION" not in done.out + done.err
    assert done.seconds < WITHIN_SECONDS


@both_engines
def test_a_killed_rank_is_named_and_all_stop(tmp_path, engine):
    text = START + "if rank == 1:\n    fault()\n    os.kill(os.getpid(), signal.SIGKILL)\ndist.all_reduce(x)\n"
    done = launch(tmp_path, text, engine=engine)
    assert done.code == 1
    assert "minifuse launch: rank 1 of 2 was killed by SIGKILL; all were stopped" in done.err
    assert done.seconds < WITHIN_SECONDS


@both_engines
def test_ranks_that_ask_for_other_collectives_are_named(tmp_path, engine):
    text = START + "fault()\nif rank == 0:\n    dist.all_reduce(x)\nelse:\n    dist.all_reduce(mf.ones(4))\ntime.sleep(9)\n"
    done = launch(tmp_path, text, engine=engine)
    assert done.code == 1
    assert "rank 0: all_reduce" in done.err
    assert "float32 (3, 5) at script.py:13" in done.err
    assert "float32 (4,) at script.py:15" in done.err
    assert done.seconds < WITHIN_SECONDS


def test_a_rank_that_ends_early_is_named(tmp_path):
    done = launch(tmp_path, START + "fault()\nif rank != 1:\n    dist.all_reduce(x)\n")
    assert done.code == 1
    assert "rank 0 waits in all_reduce" in done.err
    assert "at script.py:13" in done.err
    assert "for rank 1, which ended after 1 collective" in done.err
    assert done.seconds < WITHIN_SECONDS


def test_the_program_is_started_again_after_a_failure(tmp_path):
    text = START + "print('start', os.environ['MINIFUSE_RESTART'])\nif rank == 1 and not pathlib.Path('stamp').exists():\n"
    done = launch(tmp_path, text + "    fault()\n    os._exit(7)\ndist.all_reduce(x)\n", options=["--restarts", "3"])
    assert done.code == 0, done.err
    assert "rank 1 of 2 ended with exit status 7; all were stopped\nminifuse launch: restart 1 of 3" in done.err
    assert done.out.splitlines()[-2:] in (["start 1", "[1] start 1"], ["[1] start 1", "start 1"])


@both_engines
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_rank_survives_the_launcher(tmp_path, engine, number):
    text = (
        START + "pathlib.Path(f'pid{rank}').write_text(str(os.getpid()))\nif rank:\n    time.sleep(60)\ndist.all_reduce(x)"
    )
    with subprocess.Popen(
        command(write(tmp_path, text), engine=engine), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE
    ) as launcher:
        files = [tmp_path / "pid0", tmp_path / "pid1"]
        wait_for(lambda: all(file.exists() and file.read_text() for file in files))
        launcher.send_signal(number)
        launcher.wait(WITHIN_SECONDS + 2)
    wait_for(lambda: not any(is_running(int(file.read_text())) for file in files), WITHIN_SECONDS)
    assert launcher.returncode == (130 if number == signal.SIGINT else -number)


@both_engines
def test_ranks_may_save_after_an_interruption(tmp_path, engine):
    text = START + (
        "def save(number, frame):\n    time.sleep(1.5)\n    pathlib.Path(f'saved{rank}').touch()\n    sys.exit(130)\n"
        "signal.signal(signal.SIGINT, save)\npathlib.Path(f'ready{rank}').touch()\ntime.sleep(60)\n"
    )
    with subprocess.Popen(command(write(tmp_path, text), engine=engine), cwd=tmp_path, env=environment()) as launcher:
        wait_for(lambda: all((tmp_path / f"ready{rank}").exists() for rank in range(2)))
        launcher.send_signal(signal.SIGINT)
    assert launcher.returncode == 130
    assert all((tmp_path / f"saved{rank}").exists() for rank in range(2))


def test_a_program_started_by_mpiexec_finds_its_rank(tmp_path):
    mpiexec = Path(sys.executable).with_name("mpiexec")
    script = write(
        tmp_path, START + "if rank == 1: raise ValueError(dist.all_reduce(x).sum().item())\ndist.all_reduce(x)\n" * 2
    )
    done = run(tmp_path, [str(mpiexec), "-n", "2", sys.executable, str(script)])
    assert done.code == 1
    assert "rank 1 stops all ranks: ValueError: 120.0" in done.err or "ValueError" in done.err


def test_a_simulated_program_runs_in_one_process(tmp_path):
    text = START + "print(rank, os.getpid(), dist.all_reduce(mf.ones(1) * rank).item())"
    done = launch(tmp_path, text, engine="simulated", n=3)
    assert done.code == 0, done.err
    lines = sorted(line.split() for line in done.out.splitlines())
    assert [(rank, total) for rank, _, total in lines] == [("0", "3.0"), ("1", "3.0"), ("2", "3.0")]
    assert len({pid for _, pid, _ in lines}) == 1


def test_the_place_of_a_rank_travels_by_the_environment():
    place = Place(1, 4, "nccl", "/proc/1/fd/3", "data=2,model=2", 2)
    assert Place.read(place.variables()) == place
    assert Place.read({}) is None
    assert Place.read({"PMI_RANK": "1", "PMI_SIZE": "3"}) == Place(1, 3, "mpi")
    assert Place.read({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}) == Place(0, 2, "mpi")


@pytest.mark.parametrize("text", ["data", "data=0", "data=2,data=2", "data=3,model=2", "2,2", "data=-2"])
def test_a_mesh_that_does_not_fit_is_refused(text):
    with pytest.raises(DistributedError, match=text):
        parse_mesh(text, 4)


@pytest.mark.parametrize(("engine", "n"), [("shared", 3), ("mpi", 2)])
def test_collectives_of_the_engine_have_the_bits_of_a_loop(tmp_path, engine, n):
    done = run(tmp_path, command(ROOT / "tests" / "engines" / "check_engine.py", n=n, engine=engine))
    assert done.code == 0, done.err
    assert done.out.startswith(f"all right {engine}")


def test_each_rank_gets_its_gpu_and_its_part_of_the_processors(monkeypatch):
    monkeypatch.setattr(launcher, "count_processors", lambda: 7)
    for name in ("CUDA_VISIBLE_DEVICES", *launcher.THREAD_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    found = launcher.variables_of_rank(Place(1, 3, "nccl"))
    assert (found["CUDA_VISIBLE_DEVICES"], found["MINIFUSE_THREADS"]) == ("1", "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    found = launcher.variables_of_rank(Place(1, 2, "nccl"))
    assert (found["CUDA_VISIBLE_DEVICES"], "MINIFUSE_THREADS" in found) == ("5", False)
    with pytest.raises(RequestError, match="-n 3 needs as many GPUs"):
        launcher.variables_of_rank(Place(0, 3, "nccl"))


def test_an_unknown_engine_is_refused_before_a_rank_starts(tmp_path):
    with pytest.raises(RequestError, match="--engine: got smoke, expected one of shared, mpi, nccl, simulated"):
        launcher.run(launcher.LaunchRequest(write(tmp_path, ""), (), 2, "smoke"))
