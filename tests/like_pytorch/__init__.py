"""Lines of PyTorch as a user types them, run with minifuse in place of torch: python -m tests.like_pytorch."""
