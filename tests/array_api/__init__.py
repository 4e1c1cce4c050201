"""The tests of the array API standard, from a local checkout of github.com/data-apis/array-api-tests. See `__main__`."""
