"""Sphinx's configuration."""

import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import MockFinder

from notifier_kafka.version import __version__

project = "notifier-kafka"
author = "The notifier-kafka developers"
release = __version__
extensions = ["myst_parser", "oslo_config.sphinxext", "stevedore.sphinxext", "cliff.sphinxext"]
myst_enable_extensions = ["colon_fence", "deflist"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Notifications that are not lost"}

# Plugins are loaded to be described; that needs none of the libraries that they stand on.
sys.meta_path.insert(0, MockFinder(["pyarrow", "pyspark"]))


def setup(app: Sphinx) -> None:
    """Draw what was measured as well, with the program that measured it."""
    app.connect("build-finished", _draw)


def _draw(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        sys.path.insert(0, str(Path(app.srcdir).parent))
        from benchmarks import html_report

        drawn = html_report.render_file(Path(app.srcdir, "measured.json"))
        Path(app.outdir, "measured.html").write_text(drawn, encoding="utf-8")
