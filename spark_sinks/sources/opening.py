"""Opens a transport's driver by the contract: without the policies that publishers and listeners need."""

import contextlib
import logging
from collections.abc import Iterator

from notifier_kafka.contract import driver as driver_contract
from notifier_kafka.contract import plugins
from notifier_kafka.contract.driver import Driver
from notifier_kafka.contract.url import DriverURL
from notifier_kafka.errors import MessagingException

LOG = logging.getLogger(__name__)


@contextlib.contextmanager
def open_driver(url: DriverURL) -> Iterator[Driver]:
    """Load the driver of a URL, and close it in the end."""
    driver: Driver = plugins.load(driver_contract.NAMESPACE, str(url.transport))(url)
    try:
        yield driver
    finally:
        try:
            driver.close()
        except MessagingException as error:
            # What was read or written is complete, so this must not fail the caller.
            LOG.warning("Closing: %s", error)
