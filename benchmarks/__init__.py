"""Measurements side by side: ratios between things run in turn on the same machine."""
