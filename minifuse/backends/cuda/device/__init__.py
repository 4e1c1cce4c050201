"""GPUs, real and simulated: memory, copies, launches, CUDA graphs."""
