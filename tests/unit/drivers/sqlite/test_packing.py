"""Headers in one value, whatever their bytes."""

import string

from hypothesis import example, given
from hypothesis import strategies as st

from notifier_kafka_drivers.sqlite import packing

HEADERS = st.lists(st.tuples(st.text(string.printable), st.binary()), max_size=6).map(tuple)


@given(HEADERS)
@example(())
@example((("", b""),))
@example((("name", b"\0"), ("name", b"")))
@example((("n\0me", b"text"),))
def test_headers_come_back_as_they_were(headers: tuple[tuple[str, bytes], ...]) -> None:
    assert not headers or packing.unpack_headers(packing.pack_headers(headers)) == headers
