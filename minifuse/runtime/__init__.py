"""Memory pools, caches of kernels and plans, and the files behind them."""
