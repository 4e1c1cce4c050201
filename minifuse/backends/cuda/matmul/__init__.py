"""Matrix products on a GPU: kernels, heuristics, prologues and epilogues."""
