"""What the tests of listeners share."""

import pytest
from oslo_config import cfg


@pytest.fixture
def quick(notifier_conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Let refused notifications come back soon."""
    notifier_conf.set_override("requeue_delay", 0.05, group="listener")
    notifier_conf.set_override("requeue_delay_max", 0.1, group="listener")
    return notifier_conf
