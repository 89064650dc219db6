"""Random acts on the scenario `windows`: what the trace tells obeys the invariants.

Everything is counted over the rows, by counts of frames that never wrap, so no code of the endpoint
judges itself.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.scenarios import ActionError, World
from workbench.scenarios.windows import windows
from workbench.sim import VirtualClock
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT, Row
from workbench.trace.taps import Recorder

ACTS: list[tuple[str, dict[str, Any]]] = [
    ("grant", {"link_credit": 0, "link": "in1"}),
    ("grant", {"link_credit": 300, "link": "in1"}),
    ("grant", {"link_credit": 40, "link": "in2"}),
    ("open_window", {"frames": 0, "session": 1}),
    ("open_window", {"frames": 9, "session": 1}),
    ("open_window", {"frames": 500, "session": 1}),
    ("open_window", {"frames": 30, "session": 2}),
    ("publish", {"count": 120, "link": "out"}),
    ("publish", {"count": 7, "link": "out2"}),
    ("acknowledge", {"link": "in1"}),
    ("alarm", {"resource": "memory"}),
    ("alarm", {"resource": "disk"}),
    ("clear", {"resource": "memory"}),
    ("clear", {"resource": "disk"}),
    ("begin_session", {"link_credit": 5}),
]
STEPS = st.sampled_from([0, 1, 5, 60, 100_000])
SERVICE = st.sampled_from([0, 0, 20, 500])


def play(
    name: str, acts: list[tuple[int, int]], parameters: dict[str, Any]
) -> tuple[World, list[Row]]:
    """Act and step; acts that are not possible then are left out."""
    preset = presets.get(name)
    values = windows.values(preset, parameters)
    clock = VirtualClock()
    recorder = Recorder("random", now=lambda: clock.now_us)
    world = World(
        preset=windows.effective(preset, values), parameters=values, tap=recorder, clock=clock
    )
    windows.build(world)
    clock.run_until_rest()
    for which, steps in acts:
        act, arguments = ACTS[which]
        spec = windows.action(act)
        if spec.legal(world) is None:
            try:
                spec.do(world, spec.arguments(arguments, preset))
            except ActionError:
                continue
        clock.run_until_rest(steps)
    clock.run_until_rest()
    assert recorder.problems == []
    return world, recorder.rows


class Session:
    """One session, as counts of frames: what was sent, taken in, and allowed, each way."""

    def __init__(self) -> None:
        self.sent = {CLIENT: 0, BROKER: 0}
        self.taken = {CLIENT: 0, BROKER: 0}  # transfers from that peer
        self.allowed: dict[str, int] = {}  # transfers that this peer may have sent in all
        self.told: dict[int, int] = {}  # by frame: what its sender allows the other peer


def other(peer: str) -> str:
    return BROKER if peer == CLIENT else CLIENT


def check_windows(rows: list[Row]) -> None:
    """Invariant 5, and 15: no transfer leaves but within the window heard last."""
    sessions: dict[int, Session] = {}
    for row in rows:
        if not row.is_frame or row.session is None:
            continue
        one = sessions.setdefault(row.session, Session())
        peer = row.from_peer or ""
        if row.kind in ("begin", "flow"):
            if row.event == SENT:
                one.told[row.frame_id] = one.taken[other(peer)] + row.frame["incoming_window"]
            else:
                one.allowed[other(peer)] = one.told[row.frame_id]
        elif row.kind == "transfer" and row.event == SENT:
            assert one.sent[peer] < one.allowed[peer], f"row {row.seq}"
            one.sent[peer] += 1
        elif row.kind == "transfer":
            one.taken[peer] += 1
        remote = (row.ledger or {}).get("remote_incoming_window", 0)
        assert remote >= 0


def check_publishers(rows: list[Row]) -> None:
    """Invariant 7: credit, unconfirmed, and when credit is granted."""
    credit: dict[tuple[Any, ...], int] = {}
    confirmed = any(row.kind == "confirmed" or row.kind == "disposition" for row in rows)
    for row in rows:
        if row.link_sender != CLIENT or row.vantage != BROKER or not row.ledger:
            continue
        held = row.ledger.get("link_credit")
        assert (row.ledger.get("unconfirmed") or 0) <= (339 if confirmed else 255)
        if held is None:
            continue
        assert 0 <= held <= 170
        link = (row.session, row.link)
        if row.kind == "flow" and row.event == SENT:
            assert held == 170
            assert credit.get(link, 0) <= 85, f"row {row.seq}"
            assert (row.ledger.get("unconfirmed") or 0) < 170
        credit[link] = held


def check_consumers(rows: list[Row]) -> None:
    """Invariant 8: at most 256 wait for each consumer; the count moves only with frames."""
    begun: dict[str, int] = {}
    first: dict[str, int] = {}
    unfinished: set[str] = set()
    for row in rows:
        if row.kind == "buffer" and row.ledger:
            assert row.ledger["mailbox"] <= 3 * 256
        if row.link_sender != BROKER or row.vantage != BROKER or row.link is None:
            continue
        if row.kind == "transfer" and row.event == SENT:
            begun[row.link] = begun.get(row.link, 0) + (row.link not in unfinished)
            (unfinished.add if row.frame.get("more") else unfinished.discard)(row.link)
        count = (row.ledger or {}).get("delivery_count")
        if count is not None:
            start = first.setdefault(row.link, count - begun.get(row.link, 0))
            assert (count - start) % 2**32 == begun.get(row.link, 0), f"row {row.seq}"


def check_flows_pass(rows: list[Row]) -> None:
    """Invariant 6: what is no transfer waits for neither window nor credit."""
    sent = {
        row.frame_id for row in rows if row.kind in ("flow", "disposition") and row.event == SENT
    }
    come = {
        row.frame_id
        for row in rows
        if row.kind in ("flow", "disposition") and row.event == RECEIVED
    }
    assert sent == come


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from(["rmq4.0", "rmq4.3"]),
    st.lists(st.tuples(st.integers(0, len(ACTS) - 1), STEPS), min_size=4, max_size=25),
    st.sampled_from([0, 4294967290]),
    st.sampled_from([(64, 32768), (1200, 512)]),
    SERVICE,
    SERVICE,
)
def test_a73_invariants_5_to_8_and_15_hold_under_random_acts(
    name, acts, first_id, sizes, session_us, writer_us
) -> None:
    """Two sessions, two consumers, publishers, alarms; small frames and large, slow and quick."""
    world, rows = play(
        name,
        acts,
        {
            "messages": 300,
            "consumers": 2,
            "publisher": True,
            "client_window": 20,
            "client_first_id": first_id,
            "message_bytes": sizes[0],
            "max_frame_size": sizes[1],
            "session_us": session_us,
            "writer_us": writer_us,
        },
    )
    check_windows(rows)
    check_publishers(rows)
    check_consumers(rows)
    check_flows_pass(rows)
    client = world.peers["client"]
    assert client.ended == {}
    target = world.broker.queues["t"].queue
    sent = sum(
        1 for row in rows if (row.kind, row.event, row.from_peer) == ("transfer", SENT, CLIENT)
    )
    assert target.ready == sent
    if not world.broker.alarms:
        assert not any(one.backlog for one in client.publishers.values())


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(1, 60), st.integers(0, 70), st.integers(0, 40))
def test_invariant_15_as_many_as_the_window_was_are_tolerated(window, publish, before) -> None:
    """A client that ignores the alarm is ended by exactly the first frame above that."""
    preset = presets.get("rmq4.3")
    values = windows.values(preset, {"consumers": 0, "publisher": True, "broker_window": window})
    clock = VirtualClock()
    recorder = Recorder("ignoring", now=lambda: clock.now_us)
    world = World(
        preset=windows.effective(preset, values), parameters=values, tap=recorder, clock=clock
    )
    windows.build(world)
    clock.run_until_rest()
    acts = [("publish", before), ("alarm", None), ("ignore_window", None), ("publish", publish)]
    for name, count in acts:
        if count != 0:
            given_ = {} if count is None else {"count": count}
            spec = windows.action(name)
            spec.do(world, spec.arguments(given_, preset))
            clock.run_until_rest()
    taken = world.broker.queues["t"].queue.ready
    assert taken == before + min(publish, window)
    assert bool(world.peers["client"].ended) is (publish > window)
