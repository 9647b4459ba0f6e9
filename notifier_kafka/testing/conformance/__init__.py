"""The contract of ``notifier_kafka.driver`` as tests that any driver can run.

In a distribution whose driver is registered in ``notifier_kafka.drivers``::

    from notifier_kafka.testing import conformance

    class TestMyDriver(conformance.DriverSuite):
        @pytest.fixture
        def url(self, tmp_path):
            return f"mine:///{tmp_path}/log"

        @pytest.fixture
        def unreachable_url(self):
            return "mine:////nowhere"

The name of a test says which clause it pins. Nothing is taken to happen at once: a test
waits for what has to come true, up to the ``patience`` of the class.
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
    """Every clause of the contract, the administration, and the values that cross it."""
