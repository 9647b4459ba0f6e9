import pytest
from oslo_config import cfg

from notifier_kafka.conffixture import ConfFixture
from notifier_kafka.config import options


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    return conf


def test_the_url_is_overridden_until_the_end(conf: cfg.ConfigOpts) -> None:
    with ConfFixture(conf, "sqlite://") as fixture:
        assert fixture.transport_url == "sqlite://"
        assert options.transport_url(conf) == "sqlite://"
        fixture.transport_url = "kafka://host"
        assert options.transport_url(conf) == "kafka://host"
    assert conf.transport_url is None


def test_it_follows_the_protocol_of_fixtures(conf: cfg.ConfigOpts) -> None:
    fixture = ConfFixture(conf)
    order: list[str] = []
    fixture.setUp()
    fixture.addCleanup(order.append, "first")
    fixture.addCleanup(order.append, "second")
    conf.set_override("topics", ["a"], group="notifications")
    assert fixture.getDetails() == {}
    fixture.cleanUp()
    assert order == ["second", "first"]
    assert options.notifications(conf).topics == ["notifications"]
    fixture.cleanUp()
    assert order == ["second", "first"]


def test_reset_begins_anew(conf: cfg.ConfigOpts) -> None:
    with ConfFixture(conf) as fixture:
        fixture.transport_url = "kafka://host"
        fixture.reset()
        assert fixture.transport_url is None
        conf.set_override("notification_driver", ["log"])
        assert options.notifications(conf).driver == ["log"]


@pytest.mark.parametrize(
    ("old", "value", "name"),
    [
        ("notification_driver", ["log"], "driver"),
        ("notification_transport_url", "sqlite://", "transport_url"),
        ("notification_topics", ["a"], "topics"),
    ],
)
def test_old_names_can_be_overridden_and_cleared(
    conf: cfg.ConfigOpts, old: str, value: object, name: str
) -> None:
    with ConfFixture(conf):
        default = getattr(options.notifications(conf), name)
        conf.set_override(old, value)
        assert getattr(options.notifications(conf), name) == value
        conf.clear_override(old)
        assert getattr(options.notifications(conf), name) == default
    with pytest.raises(cfg.NoSuchOptError):
        conf.set_override(old, value)
