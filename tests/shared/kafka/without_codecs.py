"""A program that publishes to, polls and reads a compressed topic where no codec is installed."""

import sys
import time
from collections.abc import Callable

sys.modules |= dict.fromkeys(("lz4", "lz4f", "lz4framed", "snappy", "zstandard"))  # type: ignore[arg-type]

from oslo_config import cfg  # noqa: E402

from notifier_kafka.contract.driver import Limits  # noqa: E402
from notifier_kafka.errors import MessagingException  # noqa: E402
from notifier_kafka.url import TransportURL  # noqa: E402
from notifier_kafka_drivers.kafka.driver import KafkaDriver  # noqa: E402

POLLS = 3
PATIENCE = 30.0


def complaint(call: Callable[[], object]) -> str:
    """Call until there is an error."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            call()
        except MessagingException as error:
            return f"{type(error).__name__}: {error}"
    return "nothing"


def main(url: str, topic: str, compression: str) -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    url = f"{url}?client=kafka-python&compression={compression}"
    driver = KafkaDriver(TransportURL.parse(conf, url))
    print(complaint(lambda: driver.publisher(lambda *_: None, Limits())))
    member = driver.subscribe([topic], topic, "earliest")
    for _ in range(POLLS):
        print(complaint(lambda: member.poll(10, 0.5)))
    print(complaint(lambda: [list(driver.read(span)) for span in driver.spans([topic])]))
    driver.close()


main(*sys.argv[1:])
