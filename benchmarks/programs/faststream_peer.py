"""FastStream's confluent broker: ``publish|listen BOOTSTRAP TOPIC``, with the same envelope."""

import asyncio
import sys
import time
import uuid
from typing import Any

from faststream.confluent import KafkaBroker  # type: ignore[import-not-found,unused-ignore]

from benchmarks import child_protocol

MAX_IN_FLIGHT = 50_000


def publish(loop: asyncio.AbstractEventLoop, bootstrap: str, topic: str) -> None:
    broker = KafkaBroker(
        bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=child_protocol.LINGER_MS,
        config={"batch.size": child_protocol.BATCH_BYTES},
        logger=None,
    )
    loop.run_until_complete(broker.start())

    async def work(count: int) -> None:
        sent = []
        for _ in range(count):
            value, headers = child_protocol.encode()
            texts = {name: text.decode() for name, text in headers}
            sent.append(await broker.publish(value, f"{topic}.info", headers=texts, no_confirm=True))
            # librdkafka buffers 100,000 and raises beyond that.
            if len(sent) == MAX_IN_FLIGHT:
                await asyncio.gather(*sent)
                sent.clear()
        await asyncio.gather(*sent)

    loop.run_until_complete(work(1))
    child_protocol.serve(work=lambda count: loop.run_until_complete(work(count)))


def listen(loop: asyncio.AbstractEventLoop, bootstrap: str, topic: str) -> None:
    async def work(count: int) -> float:
        broker = KafkaBroker(bootstrap, logger=None)
        done = asyncio.Event()
        handled, first, began, ended = 0, 0, 0.0, 0.0

        @broker.subscriber(  # type: ignore[untyped-decorator,unused-ignore]
            f"{topic}.info",
            group_id=str(uuid.uuid4()),
            auto_offset_reset="earliest",
            batch=True,
            max_records=child_protocol.BATCH_RECORDS,
        )
        async def handle(messages: list[Any]) -> None:
            nonlocal handled, first, began, ended
            if not handled:
                first, began = len(messages), time.perf_counter()
            for message in messages:
                child_protocol.loads(message["oslo.message"])
            handled += len(messages)
            if handled >= count and not done.is_set():
                ended = time.perf_counter()
                done.set()

        await broker.start()
        await asyncio.wait_for(done.wait(), child_protocol.TIMEOUT_SECONDS)
        await broker.stop()
        return (ended - began) * count / max(1, handled - first)

    child_protocol.serve(work=lambda count: loop.run_until_complete(work(count)))


{"publish": publish, "listen": listen}[sys.argv[1]](asyncio.new_event_loop(), *sys.argv[2:])
