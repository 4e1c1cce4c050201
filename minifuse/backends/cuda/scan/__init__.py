"""Scans on a GPU: the texts of their kernels, and their launches."""
