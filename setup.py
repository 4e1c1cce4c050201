"""A shim for tools that want a setup.py; the metadata lives in pyproject.toml."""

from setuptools import setup

setup()
