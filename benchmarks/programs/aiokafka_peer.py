"""aiokafka: ``publish|listen BOOTSTRAP TOPIC``, with the same envelope."""

import asyncio
import sys
import uuid
from typing import Any

import aiokafka  # type: ignore[import-not-found,unused-ignore]

from benchmarks import child_protocol


def publish(loop: asyncio.AbstractEventLoop, bootstrap: str, topic: str) -> None:
    async def start() -> Any:
        made = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=True,
            linger_ms=child_protocol.LINGER_MS,
            max_batch_size=child_protocol.BATCH_BYTES,
        )
        await made.start()
        return made

    producer = loop.run_until_complete(start())

    async def work(count: int) -> None:
        sent = []
        for _ in range(count):
            value, headers = child_protocol.encode()
            sent.append(await producer.send(f"{topic}.info", value, headers=headers))
        await asyncio.gather(*sent)

    loop.run_until_complete(work(1))
    child_protocol.serve(work=lambda count: loop.run_until_complete(work(count)))


def listen(loop: asyncio.AbstractEventLoop, bootstrap: str, topic: str) -> None:
    opened: list[Any] = []

    async def prepare(_count: int) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            f"{topic}.info",
            bootstrap_servers=bootstrap,
            group_id=str(uuid.uuid4()),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        opened.append(consumer)
        await consumer.getone()

    async def work(count: int) -> None:
        consumer, left = opened[0], count - 1
        while True:
            found = await consumer.getmany(
                timeout_ms=60_000, max_records=min(left, child_protocol.BATCH_RECORDS)
            )
            for messages in found.values():
                for message in messages:
                    child_protocol.decode(message.value)
                left -= len(messages)
            if left <= 0:
                return
            await consumer.commit()

    async def finish(_count: int) -> None:
        await opened.pop().stop()

    steps = {each.__name__: each for each in (prepare, work, finish)}

    def run(step: str) -> Any:
        return lambda count: loop.run_until_complete(steps[step](count))

    child_protocol.serve(**{step: run(step) for step in steps})


{"publish": publish, "listen": listen}[sys.argv[1]](asyncio.new_event_loop(), *sys.argv[2:])
