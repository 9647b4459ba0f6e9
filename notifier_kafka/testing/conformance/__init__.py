"""Tests of the contract in ``notifier_kafka.driver``, for any driver.

In a distribution whose driver is registered in ``notifier_kafka.drivers``::

    from notifier_kafka.testing import conformance

    class TestMyDriver(conformance.DriverSuite):
        @pytest.fixture
        def url(self, tmp_path):
            return f"mine:///{tmp_path}/log"

        @pytest.fixture
        def unreachable_url(self):
            return "mine:////nowhere"

The name of a test says which clause it tests. Nothing has to happen at once: a test waits
until its condition is true, up to the ``patience`` of the class.
"""

from notifier_kafka.testing.conformance.administration import Administration
from notifier_kafka.testing.conformance.construction import Construction
from notifier_kafka.testing.conformance.consuming import Consuming
from notifier_kafka.testing.conformance.failures import Failures
from notifier_kafka.testing.conformance.groups import Groups
from notifier_kafka.testing.conformance.publishing import Publishing
from notifier_kafka.testing.conformance.reading import Reading
from notifier_kafka.testing.conformance.threads import Threads
from notifier_kafka.testing.conformance.transactions import Transactions


class DriverSuite(
    Publishing, Consuming, Groups, Failures, Threads, Construction, Reading, Transactions, Administration
):
    """Every clause of the contract, the ``Admin`` interface, and keys, values and headers."""
