"""What runs kernels: the contract, the specification, and the compiled backends."""
