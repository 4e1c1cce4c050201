"""Tests of the library of functions: a table of cases for each of its modules."""
