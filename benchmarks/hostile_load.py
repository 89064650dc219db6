"""Much at once against `workbench serve`: memory against stated limits, and a victim's rate.

    python benchmarks/hostile_load.py [--seconds N]

The broker is a process of its own. Measured, each with a limit: memory of 1,000 idle connections,
of 10,000 links over 100 connections, of a 16 MiB message handed out in frames of 512 octets, of a
client that grants 4294967295 and one that never reads; and how much of its 1,000
messages a second a victim keeps (unsettled, consumed) beside attackers of 2,000 frames a second. A
machine that is busy with
other things shows in the last number. The exit code is 1 if a limit is exceeded.
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
from workbench.amqp10.events import DeliveryReceived  # noqa: E402
from workbench.amqp10.messaging import Accepted  # noqa: E402
from workbench.amqp10.performatives import Flow  # noqa: E402

KIB, MIB = 1024, 1_048_576
UINT_MAX = 4294967295
RATE, ATTACK_RATE, KEPT = 1_000, 2_000, 0.8
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


def victim(broker, stack, seconds):
    """Its messages that were accepted and consumed in time, as a share of those that were due."""
    stop = threading.Event()
    flow = Flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9, next_incoming_id=0)
    burst = OPENED + BEGUN + frames_of(*[flow] * 16) + bytes(8)  # and a frame that is none

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
    tell("a victim's share of 1,000 a second", taken / (seconds * RATE), KEPT, "", at_least=True)


def main():
    """Run the command line described at the top of this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=5, help="of the victim")
    options = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for part in (connections, links, large, greedy, victim):
        with Broker("ours", "spec") as broker, contextlib.ExitStack() as stack:
            part(broker, stack, *([options.seconds] if part is victim else []))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
