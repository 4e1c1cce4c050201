"""Programs that use minifuse: examples, the visualizer, and the benchmarks."""
