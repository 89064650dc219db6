"""Messages per second: a pair of our endpoints against a pair of Proton engines.

Both pairs are pumped in memory by octets, in one process and one run. Pre-settled messages of 100
octets; the receiver grants 200 and tops up at half; no observer. The target is a ratio of 2.

    python benchmarks/endpoint_pair.py [--messages 200000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from workbench.amqp import ByteEndpoint, DeliveryReceived, LinkAttaching, TopUpAtHalf

CREDIT = 200
BODY = b"\x00\x53\x75\xa0\x5f" + b"x" * 95  # a data section; 100 octets in all
TARGET = 2.0


def ours(messages, *, fast=True, batch=True):
    """Seconds for our pair."""
    client = ByteEndpoint(container_id="client", is_client=True, fast=fast)
    server = ByteEndpoint(container_id="server", is_client=False, fast=fast)

    def pump():
        while True:
            there, back = client.data_to_send(), server.data_to_send()
            if not there and not back:
                return
            for end, data in ((server, there), (client, back)):
                for event in end.receive_data(data):
                    if isinstance(event, LinkAttaching):
                        event.link.accept()
                    else:
                        end.connection.answer(event)

    client.start()
    session = client.connection.begin()
    sender = session.attach_sender("l", None, "q")
    pump()
    (link,) = server.connection.sessions[0].links
    policy = TopUpAtHalf(CREDIT)
    link.grant(policy.initial())
    pump()
    bodies = [BODY] * CREDIT
    got = sent = 0
    began = time.perf_counter()
    while got < messages:
        if sender.can_send:
            if batch:
                sent += sender.send_settled_batch(bodies)
            else:
                while sender.credit:
                    sender.send(BODY, settled=True)
                    sent += 1
        for event in server.receive_data(client.data_to_send()):
            if type(event) is DeliveryReceived:
                assert len(event.delivery.payload) == len(BODY)
                got += 1
        grant = policy.after_delivery(link.credit, got)
        if grant is not None:
            link.grant(grant)
        for event in client.receive_data(server.data_to_send()):
            client.connection.answer(event)
    seconds = time.perf_counter() - began
    assert sent == got == sender.delivery_count == link.delivery_count
    return seconds / got * messages


def protons(messages):
    """Seconds for a pair of Proton engines, with the shortest loop its binding allows."""
    import proton

    def engine(mode):
        transport, connection = proton.Transport(mode), proton.Connection()
        transport.bind(connection)
        return transport, connection

    client_transport, client = engine(proton.Transport.CLIENT)
    server_transport, server = engine(proton.Transport.SERVER)

    def carry(source, sink):
        moved = False
        while (pending := source.pending()) > 0:
            data = source.peek(min(pending, max(0, sink.capacity())))
            if not data:
                return moved
            sink.push(data)
            source.pop(len(data))
            moved = True
        return moved

    def pump():
        ends = client_transport, server_transport
        while carry(*ends) | carry(*reversed(ends)):
            pass

    client.open()
    session = client.session()
    session.open()
    sender = session.sender("l")
    sender.target.address = "q"
    sender.open()
    pump()
    server.open()
    theirs = server.session_head(proton.Endpoint.REMOTE_ACTIVE)
    theirs.open()
    link = server.link_head(proton.Endpoint.REMOTE_ACTIVE)
    link.open()
    link.flow(CREDIT)
    pump()
    got = sent = 0
    began = time.perf_counter()
    while got < messages:
        while sender.credit > 0:
            delivery = sender.delivery(b"%d" % sent)
            sender.send(BODY)
            sender.advance()
            delivery.settle()
            sent += 1
        carry(client_transport, server_transport)
        while (delivery := link.current) is not None and delivery.readable:
            body = link.recv(delivery.pending)
            link.advance()
            delivery.settle()
            assert len(body) == len(BODY)
            got += 1
        if link.credit <= CREDIT // 2:
            link.flow(CREDIT - link.credit)
        carry(server_transport, client_transport)
    return (time.perf_counter() - began) / got * messages


def best(measure, messages, rounds):
    """Messages per second of the quickest round."""
    seconds = []
    for _ in range(rounds):
        gc.collect()
        seconds.append(measure(messages))
    return messages / min(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    n, rounds = options.messages, options.rounds
    rates = {
        "ours": best(ours, n, rounds),
        "ours, one send() per message": best(lambda m: ours(m, batch=False), n // 4, rounds),
        "ours, plain path both ways": best(
            lambda m: ours(m, fast=False, batch=False), n // 4, rounds
        ),
    }
    try:
        import proton  # noqa: F401
    except ImportError:
        print("python-qpid-proton is not installed: nothing to compare with")
        theirs = None
    else:
        theirs = rates["Proton engines"] = best(protons, n, rounds)
    for name, rate in rates.items():
        ratio = "" if theirs is None else f"  {rate / theirs:5.2f} x Proton"
        print(f"{name:32} {rate:10,.0f} messages/s{ratio}")
    if theirs is None:
        return 0
    reached = rates["ours"] / theirs
    print(
        f"target {TARGET:.1f} x: {'reached' if reached >= TARGET else 'MISSED'} ({reached:.2f} x)"
    )
    return 0 if reached >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
