"""The compiler: from a traced graph to a plan, which is a few kernels and a host program that launches them."""
