"""Just-in-time compilation: tracing a Python function to a graph, and caching its plans."""
