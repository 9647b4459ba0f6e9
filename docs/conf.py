"""Sphinx's configuration."""

from notifier_kafka.version import __version__

project = "notifier-kafka"
author = "The notifier-kafka developers"
release = __version__
extensions = ["myst_parser", "oslo_config.sphinxext", "stevedore.sphinxext", "cliff.sphinxext"]
myst_enable_extensions = ["colon_fence"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Notifications that are not lost"}
