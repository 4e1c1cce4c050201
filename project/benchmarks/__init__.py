"""The benchmarks: minifuse side by side with the libraries that people use, one runner for all rows.

    python -m project.benchmarks                          all rows; kept in project/benchmarks/results
    python -m project.benchmarks matmul "a + b"           the rows whose group or name contains one of these
    python -m project.benchmarks --quick --json out.json  small sizes, one call each: shows that every row works
    python -m project.benchmarks fusion                   the rows in which functions are fused, kept in a file of their own
    python -m project.benchmarks networks                 steps of the recipes' models beside torch's
    python -m project.benchmarks sweeps                   five operations at all sizes: where curves cross, what a call costs
    python -m project.benchmarks costs                    how cost grows with length, rank and size; what compiling costs
    python -m project.benchmarks gpu                      all rows of a GPU; one group is called, say, gpu-matmul
    python -m project.benchmarks gpu-fusion               those in which functions are fused; gpu-networks: whole models
    python -m project.benchmarks.kernel_counts            how many kernels twenty functions become
    python -m project.benchmarks --page                   writes the kept results into docs/guide/speed.md

`minifuse bench` runs the same for users. The rows are tables in `rows/`, `suites` says which are measured together.

    row, fused, timer, run           a row, and one of fused functions; timed; checked, measured and judged
    peers, indexed, indexed_gpu, by_hand, gpu, machine    the others; a GPU and its clock; where it was
    first_*, thread_times, memory_of_process              what processes of their own tell
    operations, roofs, roofline      work of a row, what the machine can, and the one under the other
    curves, chart, pictures          what rows of one curve say together; drawn as SVG and in characters
    goals, overview                  what was to be reached, and what was
    report, texts, terminal, page    tables, for a terminal and for docs/guide/speed.md
"""
