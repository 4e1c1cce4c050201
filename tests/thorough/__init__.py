"""Suites that take minutes: `make thorough` runs them whole, every run of pytest a seeded sample."""
