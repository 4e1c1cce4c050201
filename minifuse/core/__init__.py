"""Pure definitions: dtypes, layouts, operators, backpropagation. No kernels and no memory."""
