"""Fixtures of the tests of options."""

import importlib.util
import pathlib
from collections.abc import Callable
from types import ModuleType

import pytest
from oslo_config import cfg

from tests.shared.checkout import ROOT

Conf = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def read(tmp_path: pathlib.Path) -> Conf:
    def read(text: str, name: str = "app.conf") -> cfg.ConfigOpts:
        path = tmp_path / name
        path.write_text(text)
        conf = cfg.ConfigOpts()
        conf(args=["--config-file", str(path)], default_config_dirs=[])
        return conf

    return read


@pytest.fixture
def kafka() -> ModuleType:
    """The Kafka driver's options, from the file: its package may need what is not installed."""
    spec = importlib.util.spec_from_file_location("kafka_options", ROOT / "drivers" / "kafka" / "options.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
