"""The benchmarks: minifuse side by side with the libraries that people use, one runner for all rows.

    python -m project.benchmarks                          all rows; kept in project/benchmarks/results
    python -m project.benchmarks matmul "a + b"           the rows whose group or name contains one of these
    python -m project.benchmarks --quick --json out.json  small sizes, one call each: shows that every row works
    python -m project.benchmarks fusion                   the rows in which functions are fused, kept in a file of their own
    python -m project.benchmarks networks                 steps of the recipes' models beside torch's
    python -m project.benchmarks gpu                      all rows of a GPU; one group is called, say, gpu-matmul
    python -m project.benchmarks gpu-fusion               those in which functions are fused; gpu-networks: whole models
    python -m project.benchmarks.kernel_counts            how many kernels twenty functions become
    python -m project.benchmarks --page                   writes the kept results into docs/guide/speed.md

The rows are tables in `rows/`. `row` says what a row is, `timer` measures, `run` checks and measures a row, `report` and
`page` show what was found. `peers`, `machine` and `by_hand` are the others, the place, and networks without autodiff;
`gpu` is the place and the clock of the rows that run on one; `fused` makes rows of functions that are fused.
"""
