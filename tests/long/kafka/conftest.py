"""kafka-python runs in the process of these tests, and leaves sockets to the garbage collector."""

from tests.shared.left_sockets import grown_up, left_sockets

__all__ = ["grown_up", "left_sockets"]
