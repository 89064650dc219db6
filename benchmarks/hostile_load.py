"""Much at once against `workbench serve`: memory against stated limits, and a victim's rate.

    python benchmarks/hostile_load.py [--seconds N]

The broker is a process of its own. Measured, each with a limit: memory of 1,000 idle connections,
of 10,000 links over 100 connections, of a 16 MiB message handed out in frames of 512 octets, of a
client that grants 4294967295 and one that never reads; of AMQP 0-9-1 10,000 channels over 10
connections, a consumer without acknowledgements that never reads, and a publisher that ignores
connection.blocked; and how much of its 1,000 messages a second a victim keeps (unsettled, consumed)
beside attackers of 2,000 frames a second, in either protocol. A machine that is busy with other
things shows in the last numbers. The exit code is 1 if a limit is exceeded.
"""

import argparse
import contextlib
import resource
import socket
import sys
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO), str(REPO / "benchmarks")]

from live_broker import Broker  # noqa: E402

from tests.net.conftest import RawClient  # noqa: E402
from tests.net.test_hostile_load import BEGUN, OPENED, frames_of  # noqa: E402
from tests.net.test_live_091 import handshake, publish  # noqa: E402
from workbench.amqp091 import frame as f091  # noqa: E402
from workbench.amqp091 import methods as m091  # noqa: E402
from workbench.amqp10.events import DeliveryReceived  # noqa: E402
from workbench.amqp10.messaging import Accepted  # noqa: E402
from workbench.amqp10.performatives import Flow  # noqa: E402

KIB, MIB = 1024, 1_048_576
UINT_MAX = 4294967295
RATE, ATTACK_RATE, KEPT = 1_000, 2_000, 0.8
LOW_MEMORY = ("--config", "vm_memory_high_watermark=20MB")
failed = []


def tell(what, found, limit, unit, at_least=False):
    """Print a measurement beside its limit."""
    kept = found >= limit if at_least else found <= limit
    if not kept:
        failed.append(what)
    word = "at least" if at_least else "at most"
    print(f"{what:46} {found:9.2f} {unit:4} {word} {limit:g}{'' if kept else '   EXCEEDED'}")


def data(size):
    """A message of one data section."""
    return b"\x00\x53\x75\xb0" + size.to_bytes(4, "big") + bytes(size)


def connections(broker, stack):
    """A thousand, idle."""
    before = broker.memory()
    for _ in range(1_000):
        stack.enter_context(RawClient(broker)).open()
    tell("an idle connection of 1,000", (broker.memory() - before) / 1_000 / KIB, 64, "KiB")


def links(broker, stack):
    """A hundred on each of a hundred connections."""
    clients = [stack.enter_context(RawClient(broker)).open() for _ in range(100)]
    before = broker.memory()
    for client in clients:
        session = client.session()
        each = [session.attach_sender(f"l{n}", None, f"q{n % 10}") for n in range(100)]
        client.pump(lambda each=each: all(link.credit > 0 for link in each), 60)
    tell(
        "a link of 10,000 over 100 connections",
        (broker.memory() - before) / 10_000 / KIB,
        16,
        "KiB",
    )


def large(broker, stack):
    """16 MiB, to the broker in its frames, and back in the client's of 512 octets."""
    client = stack.enter_context(RawClient(broker, max_frame_size=512)).open()
    session = client.session()
    before = broker.memory()
    receiver = client.receiver(session, "large")
    sender = client.sender(session, "large")
    sender.send(data(16 * MIB - 8), settled=True)
    receiver.grant(1)
    client.flush()
    client.pump(lambda: any(isinstance(e, DeliveryReceived) for e in client.events), 120)
    tell("a message of 16 MiB, to and fro", (broker.memory() - before) / MIB, 96, "MiB")


def greedy(broker, stack):
    """One grants all there is; it never reads, and 20 MB come for it."""
    deaf = stack.enter_context(RawClient(broker)).open()
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    receiver = deaf.receiver(deaf.session(), "deaf")
    writer = stack.enter_context(RawClient(broker)).open()
    sender = writer.sender(writer.session(), "deaf")
    before = broker.memory()
    receiver.grant(UINT_MAX)
    deaf.flush()
    for _ in range(1_000):
        writer.pump(lambda: sender.credit > 0)
        sender.send(data(20_000), settled=True)
        writer.flush()
    tell(
        "20 MB for one that granted all and never reads",
        (broker.memory() - before) / MIB,
        40,
        "MiB",
    )


def octets_091(*items):
    """Of these frames."""
    return b"".join(map(f091.encode_item, items))


OPENED_091 = octets_091(*handshake(), f091.Frame(1, m091.ChannelOpen()))


def dial_091(broker, stack, *items):
    """A socket with an open connection and channel, over which these frames were sent."""
    sock = stack.enter_context(socket.create_connection((broker.host, broker.port), timeout=60))
    sock.sendall(OPENED_091)
    hear_091(sock, "channel.open-ok")
    sock.sendall(octets_091(*items))
    return sock


def hear_091(sock, kind):
    """Read until a method of this name has come."""
    reader, said = f091.FrameReader(131072, mid_stream=True), []
    while kind not in map(f091.kind_of, said):
        octets = sock.recv(65536)
        assert octets, f"the broker has ended the connection: {said[-1:]}"
        said = [raw.item for raw in reader.feed(octets)]


def channels_091(broker, stack):
    """A thousand on each of ten connections."""
    socks = [dial_091(broker, stack) for _ in range(10)]
    before = broker.memory()
    opens = [f091.Frame(number, m091.ChannelOpen()) for number in range(2, 1_001)]
    for sock in socks:
        sock.sendall(octets_091(*opens, f091.Frame(1_000, m091.QueueDeclare(exclusive=True))))
        hear_091(sock, "queue.declare-ok")
    tell(
        "a channel of 10,000 over 10 connections",
        (broker.memory() - before) / 10_000 / KIB,
        16,
        "KiB",
    )


def deaf_091(broker, stack):
    """One consumes without acknowledgements and never reads, and 20 MB come for it."""
    declare = f091.Frame(1, m091.QueueDeclare(queue="deaf", durable=True))
    consume = f091.Frame(1, m091.BasicConsume(queue="deaf", no_ack=True))
    deaf = dial_091(broker, stack, declare, consume)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    before = broker.memory()
    name = m091.BasicPublish(routing_key="deaf")
    message = octets_091(f091.Frame(1, name), *publish(bytes(20_000))[1:])
    writer = dial_091(broker, stack)
    for _ in range(1_000):
        writer.sendall(message)
    writer.sendall(octets_091(f091.Frame(1, m091.QueueDeclare(queue="deaf", passive=True))))
    hear_091(writer, "queue.declare-ok")
    tell(
        "20 MB for a consumer that never reads, 0-9-1", (broker.memory() - before) / MIB, 40, "MiB"
    )


def blocked_091(broker, stack):
    """Many publish without confirms until TCP holds them, long after they were told blocked."""
    before = broker.memory()
    message = octets_091(*publish(bytes(100_000)))
    declare = f091.Frame(1, m091.QueueDeclare(queue="q", durable=True))
    for _ in range(10):
        sock = dial_091(broker, stack, declare)
        sock.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while broker.memory() - before < 200 * MIB:
                sock.sendall(message)
    tell("ten publishers that ignore blocked, 0-9-1", (broker.memory() - before) / MIB, 100, "MiB")


def victim_091(broker, stack, seconds):
    """The same beside attackers that speak AMQP 0-9-1."""
    qos = f091.Frame(1, m091.BasicQos(prefetch_count=1))
    header, start_ok, _, opens = handshake()
    tune_ok = f091.Frame(0, m091.ConnectionTuneOk(channel_max=63, frame_max=8192))
    channel = f091.Frame(1, m091.ChannelOpen())
    burst = octets_091(header, start_ok, tune_ok, opens, channel, *[qos] * 15)
    burst += b"\xff" * 8  # and a frame that is none
    victim(broker, stack, seconds, burst, "beside 0-9-1: share of 1,000 a second")


FLOW = Flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9, next_incoming_id=0)
BURST = OPENED + BEGUN + frames_of(*[FLOW] * 16) + bytes(8)  # and a frame that is none


def victim(broker, stack, seconds, burst=BURST, what="a victim's share of 1,000 a second"):
    """Its messages that were accepted and consumed in time, as a share of those that were due."""
    stop = threading.Event()

    def attack():
        due = time.monotonic()
        while not stop.is_set():
            due += 20 * 4 / ATTACK_RATE  # one of four
            with (
                contextlib.suppress(OSError),
                socket.create_connection((broker.host, broker.port), timeout=5) as sock,
            ):
                sock.sendall(burst)
            stop.wait(max(0, due - time.monotonic()))

    writer = stack.enter_context(RawClient(broker)).open()
    reader = stack.enter_context(RawClient(broker)).open()
    sender = writer.sender(writer.session(), "victim")
    receiver = reader.receiver(reader.session(), "victim")
    receiver.grant(UINT_MAX // 2)
    attackers = [threading.Thread(target=attack) for _ in range(4)]
    for attacker in attackers:
        attacker.start()
    began, sent, seen, taken = time.monotonic(), 0, 0, 0
    while (passed := time.monotonic() - began) < seconds:
        while sent < passed * RATE and sender.credit:
            sender.send(data(100))
            sent += 1
        writer.pump(lambda: False, 0.001, strict=False)
        reader.pump(lambda: False, 0.001, strict=False)
        for event in reader.events[seen:]:
            if isinstance(event, DeliveryReceived):
                receiver.settle(event.delivery.delivery_id, state=Accepted())
                taken += 1
        seen = len(reader.events)
    stop.set()
    for attacker in attackers:
        attacker.join()
    tell(what, taken / (seconds * RATE), KEPT, "", at_least=True)


def main():
    """Run the command line described at the top of this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=5, help="of the victim")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    parts = (
        (connections, "spec"),
        (links, "spec"),
        (large, "spec"),
        (greedy, "spec"),
        (victim, "spec"),
        (channels_091, "rmq4.3"),
        (deaf_091, "rmq4.3"),
        (blocked_091, "rmq4.3"),
        (victim_091, "spec"),
    )
    for part, preset in parts:
        more = LOW_MEMORY if part is blocked_091 else ()
        with Broker("ours", preset, more) as broker, contextlib.ExitStack() as stack:
            part(broker, stack, *([options.seconds] if part in (victim, victim_091) else []))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
