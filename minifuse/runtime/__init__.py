"""Memory pool, caches of kernels and plans, and their files on disk."""
