"""Messages per second of processor time: a pair of our endpoints against a pair of Proton engines.

Both pairs are pumped in memory by octets, in one process; their rounds alternate, and the quickest
of each counts. Messages of 100 octets; the receiver grants 200 and tops up at half; no observer.
Ours take the broker's way: `FrameReader`, `Connection.apply`, `answer`, `encode_item`.
Two kinds: pre-settled with `send()`, and unsettled, where each message is settled by a disposition
of its own. The bars are 1.9 and 1.3 times Proton.

    python benchmarks/endpoint_pair.py [--messages 40000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.amqp10.byte_endpoint import ByteEndpoint
from workbench.amqp10.credit import TopUpAtHalf
from workbench.amqp10.events import DeliveryReceived, LinkAttaching

CREDIT = 200
BODY = b"\x00\x53\x75\xa0\x5f" + b"x" * 95  # a data section; 100 octets in all
BARS = {"pre-settled": 1.9, "unsettled": 1.3}


def ours(messages: int, settled: bool) -> float:
    """Seconds of processor time per message for our pair."""
    client = ByteEndpoint(container_id="client", is_client=True)
    server = ByteEndpoint(container_id="server", is_client=False)

    def pump() -> None:
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

    client.connection.start()
    session = client.connection.begin()
    sender = session.attach_sender("l", None, "q")
    pump()
    (link,) = server.connection.sessions[0].links
    policy = TopUpAtHalf(CREDIT)
    link.grant(policy.initial())
    pump()
    got = sent = 0
    began = time.process_time()
    while got < messages:
        while sender.can_send:
            sender.send(BODY, settled=settled)
            sent += 1
        for event in server.receive_data(client.data_to_send()):
            if type(event) is DeliveryReceived:
                delivery = event.delivery
                assert len(delivery.payload) == len(BODY)
                if not settled:
                    link.settle(delivery.delivery_id)
                got += 1
            server.connection.answer(event)
        grant = policy.after_delivery(link.credit, got)
        if grant is not None:
            link.grant(grant)
        for event in client.receive_data(server.data_to_send()):
            client.connection.answer(event)
    seconds = time.process_time() - began
    assert sent == got == sender.delivery_count == link.delivery_count
    assert not sender.unsettled
    return seconds / got


def protons(messages: int, settled: bool) -> float:
    """The same for a pair of Proton engines, with the shortest loop its binding allows."""
    import proton

    def engine(mode):
        transport, connection = proton.Transport(mode), proton.Connection()
        transport.bind(connection)
        return transport, connection

    client_transport, client = engine(proton.Transport.CLIENT)
    server_transport, server = engine(proton.Transport.SERVER)

    def carry(source, sink) -> bool:
        moved = False
        while (pending := source.pending()) > 0:
            data = source.peek(min(pending, max(0, sink.capacity())))
            if not data:
                return moved
            sink.push(data)
            source.pop(len(data))
            moved = True
        return moved

    def pump() -> None:
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
    waiting = []
    began = time.process_time()
    while got < messages:
        while sender.credit > 0:
            delivery = sender.delivery(b"%d" % sent)
            sender.send(BODY)
            sender.advance()
            if settled:
                delivery.settle()
            else:
                waiting.append(delivery)
            sent += 1
        carry(client_transport, server_transport)
        while (delivery := link.current) is not None and delivery.readable:
            body = link.recv(delivery.pending)
            link.advance()
            if not settled:
                delivery.update(proton.Delivery.ACCEPTED)
            delivery.settle()
            assert len(body) == len(BODY)
            got += 1
        if link.credit <= CREDIT // 2:
            link.flow(CREDIT - link.credit)
        carry(server_transport, client_transport)
        for delivery in waiting:
            assert delivery.remote_state == proton.Delivery.ACCEPTED
            delivery.settle()
        waiting.clear()
    return (time.process_time() - began) / got


def best(
    pairs: dict[str, Callable[[int, bool], float]], messages: int, settled: bool, rounds: int
) -> dict[str, float]:
    """Messages per second of each pair's quickest round; the rounds of the pairs alternate."""
    rates = dict.fromkeys(pairs, 0.0)
    for _ in range(rounds):
        for name, measure in pairs.items():
            gc.collect()
            rates[name] = max(rates[name], 1 / measure(messages, settled))
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    pairs = {"ours": ours}
    try:
        import proton  # noqa: F401
    except ImportError:
        print("python-qpid-proton is not installed: nothing to compare with")
    else:
        pairs["Proton engines"] = protons
    missed = False
    for kind, bar in BARS.items():
        rates = best(pairs, options.messages, kind == "pre-settled", options.rounds)
        told = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
        line = f"{kind:12} {told} messages a second of processor time"
        if len(rates) > 1:
            ratio = rates["ours"] / rates["Proton engines"]
            missed |= ratio < bar
            line += f": {ratio:.2f} x, bar {bar} {'MISSED' if ratio < bar else 'reached'}"
        print(line)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
