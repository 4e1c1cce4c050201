"""All rows, in the order of the report. A new row is an entry in one of these files."""

from . import functions, host, large, products, start, sweep, training

ROWS = [*host.ROWS, *large.ROWS, *functions.ROWS, *products.ROWS, *training.ROWS, *start.ROWS, *sweep.ROWS]
