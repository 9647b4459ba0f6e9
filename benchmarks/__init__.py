"""Benchmarks: this project and its alternatives in turn on the same machine, and their ratios."""
