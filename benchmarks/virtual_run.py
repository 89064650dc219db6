"""Rows and messages per second of a virtual run: a queue, a wire, a receiver that acknowledges.

The scenario `credit` with 100,000 messages of 100 octets, topped up at half of 200, is played with
the recorder (a trace in memory), and without any tap. In the same process a pair of Proton engines
moves as many messages, pumped in memory by octets and acknowledged as well, without a broker, a
queue, a clock or a trace; and a bare loop runs as many clock events that do nothing.

    python benchmarks/virtual_run.py [--messages 100000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from workbench import presets
from workbench.scenarios import World, run
from workbench.scenarios.credit import credit
from workbench.sim import VirtualClock

CREDIT_GRANTED = 200
BODY = b"\x00\x53\x75\xa0\x5f" + b"x" * 95  # a data section; 100 octets in all


def parameters(messages: int) -> dict[str, int | str]:
    """What is played."""
    return {
        "messages": messages,
        "policy": "top-up-at-half",
        "n": CREDIT_GRANTED,
        "acknowledge": "auto",
        "message_bytes": 95,
    }


def recorded(messages: int) -> tuple[float, int]:
    """Seconds and rows with the recorder."""
    began = time.perf_counter()
    played = run("credit", parameters=parameters(messages), max_rows=100 * messages)
    seconds = time.perf_counter() - began
    assert played.rested
    assert played.world.peers["consumer"].received == messages
    return seconds, len(played.rows)


def untapped(messages: int) -> tuple[float, int]:
    """Seconds and clock events without any tap."""
    preset = presets.get("spec")
    values = credit.values(preset, parameters(messages))
    began = time.perf_counter()
    world = World(preset=credit.effective(preset, values), parameters=values)
    credit.build(world)
    events = world.clock.run_until_rest(100 * messages)
    seconds = time.perf_counter() - began
    assert world.peers["consumer"].received == messages
    return seconds, events


def bare_clock(events: int) -> float:
    """Seconds for as many events that do nothing."""
    clock = VirtualClock()
    left = events

    def nothing() -> None:
        nonlocal left
        left -= 1
        if left:
            clock.call_later(1, nothing)

    began = time.perf_counter()
    clock.call_later(1, nothing)
    clock.run_until_rest(events)
    return time.perf_counter() - began


def proton_pair(messages: int) -> float | None:
    """Seconds for two Proton engines, or None where Proton is not installed."""
    try:
        import proton
    except ImportError:
        return None
    out, client = proton.Transport(proton.Transport.CLIENT), proton.Connection()
    into, server = proton.Transport(proton.Transport.SERVER), proton.Connection()
    out.bind(client)
    into.bind(server)

    def pump() -> None:
        moved = True
        while moved:
            moved = False
            for one, other in ((out, into), (into, out)):
                while one.pending() > 0:
                    room = other.capacity()
                    if room <= 0:
                        break
                    data = one.peek(min(one.pending(), room))
                    other.push(data)
                    one.pop(len(data))
                    moved = True

    client.open()
    session = client.session()
    session.open()
    sender = session.sender("l")
    sender.target.address = "q"
    sender.open()
    pump()
    server.open()
    server.session_head(proton.Endpoint.REMOTE_ACTIVE).open()
    receiver = server.link_head(proton.Endpoint.REMOTE_ACTIVE)
    receiver.open()
    pump()
    began = time.perf_counter()
    sent = received = 0
    unsettled: list[proton.Delivery] = []
    while received < messages:
        if receiver.credit <= CREDIT_GRANTED // 2:
            receiver.flow(CREDIT_GRANTED - receiver.credit)
        pump()
        while sender.credit > 0 and sent < messages:
            unsettled.append(sender.delivery(str(sent)))
            sender.send(BODY)
            sender.advance()
            sent += 1
        pump()
        while (delivery := receiver.current) is not None and delivery.readable:
            receiver.recv(delivery.pending)
            receiver.advance()
            delivery.update(proton.Delivery.ACCEPTED)
            delivery.settle()
            received += 1
        pump()
        for delivery in unsettled:
            assert delivery.remote_state == proton.Delivery.ACCEPTED
            delivery.settle()
        unsettled.clear()
    return time.perf_counter() - began


def best(measure: Callable[[], float], rounds: int) -> float:
    """The quickest of several rounds, each begun with a clean heap."""
    times = []
    for _ in range(rounds):
        gc.collect()
        times.append(measure())
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    messages, rounds = chosen.messages, chosen.rounds
    rows = events = 0

    def with_recorder() -> float:
        nonlocal rows
        seconds, rows = recorded(messages)
        return seconds

    def without() -> float:
        nonlocal events
        seconds, events = untapped(messages)
        return seconds

    bare = best(without, rounds)
    tapped = best(with_recorder, rounds)
    clock = best(lambda: bare_clock(events), rounds)
    print(f"{messages:,} messages, credit {CREDIT_GRANTED} topped up at half, acknowledged")
    print(f"with recorder    {tapped:7.2f} s  {rows / tapped:10,.0f} rows/s  {rows:,} rows")
    print(f"without taps     {bare:7.2f} s  {events / bare:10,.0f} events/s")
    print(f"bare clock       {clock:7.2f} s  {events / clock:10,.0f} events/s that do nothing")
    print(f"recorder costs   {tapped / bare:7.2f} x the run without it")
    print(f"run costs        {bare / clock:7.1f} x a clock that does nothing")
    if proton_pair(10) is None:
        print("Proton pair      not installed")
        return
    pair = best(lambda: proton_pair(messages) or 0.0, rounds)
    print(f"Proton pair      {pair:7.2f} s  {messages / pair:10,.0f} messages/s")
    print(f"ours, no taps    {bare:7.2f} s  {messages / bare:10,.0f} messages/s")
    print(f"ratio            {pair / bare:7.2f} (above 1: the virtual run is quicker)")


if __name__ == "__main__":
    main()
