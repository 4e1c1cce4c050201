"""Templates of generated CUDA kernels, and the choice between them."""
