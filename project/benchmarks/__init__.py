"""The benchmarks: minifuse side by side with the libraries that people use, one runner for all rows.

    python -m project.benchmarks                          all rows; results are kept in project/benchmarks/results
    python -m project.benchmarks matmul "a + b"           the rows whose group or name contains one of these
    python -m project.benchmarks --quick --json out.json  small sizes, one call each: shows that every row works
    python -m project.benchmarks fusion                   rows of fused functions, kept in a separate file
    python -m project.benchmarks networks                 steps of the recipes' models beside torch's
    python -m project.benchmarks sweeps                   five operations at all sizes: where curves cross, what a call costs
    python -m project.benchmarks costs                    how cost grows with length, rank and size; what compiling costs
    python -m project.benchmarks gpu                      all rows of a GPU; gpu-matmul selects one group
    python -m project.benchmarks gpu-fusion               fused functions on a GPU; gpu-networks: whole models
    python -m project.benchmarks.kernel_counts            how many kernels twenty functions become
    python -m project.benchmarks --page                   writes the kept results into docs/guide/speed.md and speed/

`minifuse bench` runs the same for users. The rows are in `rows/`; `suites` defines which are measured together.

    row, fused, timer, run           rows, rows of fused functions, the timer, and the runner that checks and judges
    peers, indexed, indexed_gpu, by_hand, gpu, machine    the peers; the GPU and its clock; the machine
    first_*, thread_times, memory_of_process              measurements in processes of their own
    operations, machine_peaks, roofline    arithmetic of a row, peak rates of the machine, and the roofline
    curves, chart, pictures          rows of one curve together; drawn as SVG and in characters
    goals, overview                  the goals, and whether they are met
    highlights, dots                 the figures and charts of docs/guide/speed.md
    report, formatting, terminal, page    tables, for a terminal and for the pages about speed
"""
