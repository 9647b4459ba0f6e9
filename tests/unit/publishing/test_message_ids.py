import datetime
import os
import re
import threading
import uuid

from notifier_kafka.publishing import message_ids

COUNT = 50_000  # many blocks of 256


def test_ids_are_random_version_4_uuids() -> None:
    ids = [message_ids.new_message_id() for _ in range(COUNT)]
    assert len(set(ids)) == COUNT
    for text in ids:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)
    for place in set(range(36)) - {8, 13, 14, 18, 19, 23}:
        assert len({text[place] for text in ids}) == 16
    assert {text[19] for text in ids} == set("89ab")


def test_threads_draw_different_ids() -> None:
    drawn: list[list[str]] = []
    together = threading.Barrier(8)

    def draw() -> None:
        together.wait()
        drawn.append([message_ids.new_message_id() for _ in range(COUNT)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set().union(*drawn)) == 8 * COUNT


def test_a_child_does_not_repeat_its_parents_ids() -> None:
    message_ids.new_message_id()  # a block is in hand
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, "\n".join(message_ids.new_message_id() for _ in range(100)).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        of_child = pipe.read().split()
    assert os.waitpid(child, 0)[1] == 0
    assert len(of_child) == 100
    assert not {message_ids.new_message_id() for _ in range(100)} & set(of_child)


def test_timestamps_are_naive_utc() -> None:
    def now() -> str:
        return str(datetime.datetime.now(datetime.UTC).replace(tzinfo=None))

    for _ in range(2000):
        before, text, after = now(), message_ids.timestamp_now(), now()
        # As text: a fraction of zero is absent, in both.
        assert before <= text <= after
        assert str(datetime.datetime.fromisoformat(text)) == text
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{6})?", text)
