"""The exit code of each error."""

import inspect

import pytest

from notifier_kafka import errors
from notifier_kafka.cli.exits import Declined, Exit, Partial, UsageError, exit_code

EXPECTED: dict[BaseException, int] = {
    errors.TransportUnavailable("x"): 3,
    errors.LogUnusable("x"): 3,
    errors.DeliveryFailed("x"): 3,
    errors.OutboxFull("x"): 3,
    errors.MessagingTimeout("x"): 3,
    errors.ServerListenError("x", "y"): 3,
    errors.GroupBusy("x"): 3,
    Partial("x"): 4,
    errors.ConfigurationError("x"): 5,
    errors.InvalidTransportURL("x", "y"): 5,
    errors.DriverNotFound("x", "y"): 5,
    errors.DriverLoadFailure("x", "y"): 6,
    errors.EncodeError("x"): 2,
    errors.TopicNotFound("x"): 2,
    UsageError("x"): 2,
    Declined(): 130,
    KeyboardInterrupt(): 130,
    BrokenPipeError(): 141,
    RuntimeError("x"): 1,
}


@pytest.mark.parametrize(("error", "expected"), EXPECTED.items())
def test_each_error_has_its_code(error: BaseException, expected: int) -> None:
    assert exit_code(error) == expected


def test_no_error_of_the_package_counts_as_success() -> None:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    found = [kind for kind in kinds if issubclass(kind, errors.MessagingException)]
    assert len(found) > 10
    for kind in found:
        assert exit_code(kind.__new__(kind)) != Exit.OK


def test_a_failure_to_deliver_counts_as_what_caused_it() -> None:
    wrapped = errors.DeliveryFailed("x")
    wrapped.__cause__ = errors.ConfigurationError("y")
    assert exit_code(wrapped) == Exit.CONFIGURATION
    wrapped.__cause__ = errors.TransportUnavailable("y")
    assert exit_code(wrapped) == Exit.UNREACHABLE
    wrapped.__cause__ = RuntimeError("y")
    assert exit_code(wrapped) == Exit.UNREACHABLE
