"""Clients of brokers run in the process of these tests."""

from tests.shared.left_sockets import grown_up, left_sockets

__all__ = ["grown_up", "left_sockets"]
