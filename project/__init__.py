"""What is built with minifuse: runnable examples, and the benchmarks."""
