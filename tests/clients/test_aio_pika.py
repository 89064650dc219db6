"""aio-pika, for asyncio, with a codec of its own, speaks AMQP 0-9-1 to the live broker."""

import asyncio

import pytest

from tests.clients.conftest import MESSAGES
from tests.patience import TIMEOUT_S

aio_pika = pytest.importorskip("aio_pika", reason="needs aio-pika")

from aio_pika.exceptions import (  # noqa: E402  (only where the library is)
    ChannelNotFoundEntity,
    DeliveryError,
    ProbableAuthenticationError,
    PublishError,
)

PREFETCH = 100


def run(work):
    """Run it to its end."""
    asyncio.run(asyncio.wait_for(work, TIMEOUT_S))


def url(broker, who="guest:guest"):
    """Of the broker, for the client."""
    return f"amqp://{who}@{broker.host}:{broker.port}/"


async def publish(channel, queue, numbers):
    """Publish numbers, many at once; each waits for its confirm."""
    exchange = channel.default_exchange
    await asyncio.gather(
        *(exchange.publish(aio_pika.Message(b"%d" % number), queue) for number in numbers)
    )


async def consume(queue, total):
    """Consume and acknowledge so many messages."""
    bodies = []
    async with queue.iterator() as messages:
        async for message in messages:
            await message.ack()
            bodies.append(int(message.body))
            if len(bodies) == total:
                break
    return bodies


@pytest.mark.parametrize("total", [300, pytest.param(MESSAGES, marks=pytest.mark.slow)])
def test_aio_pika_publishes_and_consumes_with_prefetch_in_order(serve, total):
    """Many confirms are outstanding; each is acknowledged, and none is left."""
    broker = serve()

    async def work():
        async with await aio_pika.connect(url(broker)) as connection:
            channel = await connection.channel()
            await channel.set_qos(PREFETCH)
            queue = await channel.declare_queue("q", durable=True)
            await publish(channel, "q", range(total))
            assert await consume(queue, total) == list(range(total))

    run(work())
    broker.wait_for("q", "terminal", total)


def test_aio_pika_is_told_what_went_wrong(serve):
    """Returned, nacked, not there, not let in: each has its own exception."""
    broker = serve(users={"ann": "secret"})

    async def work():
        with pytest.raises(ProbableAuthenticationError):
            await aio_pika.connect(url(broker))
        async with await aio_pika.connect(url(broker, "ann:secret")) as connection:
            channel = await connection.channel(on_return_raises=True)
            message = aio_pika.Message(b"x")
            with pytest.raises(PublishError):
                await channel.default_exchange.publish(message, "nowhere")
            full = {"x-max-length": 1, "x-overflow": "reject-publish"}
            await channel.declare_queue("full", durable=True, arguments=full)
            await channel.default_exchange.publish(message, "full")
            with pytest.raises(DeliveryError):
                await channel.default_exchange.publish(message, "full")
            with pytest.raises(ChannelNotFoundEntity):
                await channel.get_queue("nowhere")

    run(work())


def test_aio_pika_connects_again_and_goes_on_consuming(serve):
    """Its robust connection declares and consumes anew after a cut without a word."""
    broker = serve()

    async def work():
        connection = await aio_pika.connect_robust(url(broker), reconnect_interval=0.05)
        async with connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("q", durable=True)
            got, came = [], asyncio.Event()

            async def take(message):
                await message.ack()
                got.append(message.body)
                came.set()

            await queue.consume(take)
            again = asyncio.Event()
            connection.reconnect_callbacks.add(lambda *_: again.set())
            assert broker.cut() == 1
            await again.wait()
            await publish(channel, "q", [7])
            await came.wait()
            assert got == [b"7"]

    run(work())


def test_aio_pika_waits_while_it_is_blocked(serve):
    """A publish under an alarm is confirmed when the alarm is over."""
    broker = serve()
    inside = broker.live.listener.broker

    async def work():
        async with await aio_pika.connect(url(broker)) as connection:
            channel = await connection.channel()
            await channel.declare_queue("q", durable=True)
            broker.live.ask(inside.set_alarm)
            publishing = asyncio.create_task(publish(channel, "q", [1]))
            found = broker.live.overview
            while found()["c1.state"] != "blocked":
                await asyncio.sleep(0.005)
            assert not publishing.done()
            broker.live.ask(inside.clear_alarm)
            await publishing

    run(work())
    assert broker.count("q") == 1
