"""Sphinx's configuration."""

import sys

from sphinx.ext.autodoc.mock import MockFinder

from notifier_kafka.version import __version__

project = "notifier-kafka"
author = "The notifier-kafka developers"
release = __version__
extensions = ["myst_parser", "oslo_config.sphinxext", "stevedore.sphinxext", "cliff.sphinxext"]
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Notifications that are not lost"}

# Plugins are loaded to be described; that needs none of the libraries that they stand on.
sys.meta_path.insert(0, MockFinder(["pyarrow", "pyspark"]))
