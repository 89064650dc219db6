"""Which brake is on at every step: decided from the rows, between the rows of the link too."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.scenarios import run
from workbench.scenarios.action import ActionError
from workbench.trace import brakes
from workbench.trace.braking import Braking, blocked_intervals, blocked_us, held_by, links_of
from workbench.trace.cut import cut_rows
from workbench.trace.fold import link_scope


def publishing(preset="rmq4.3", **parameters):
    """A run in which everything is attached and nothing was published."""
    return run("publishers", preset, parameters)


def then(played, name, **arguments):
    """An act when the run has come to rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


def names_in_order(played, link=0) -> list[str]:
    """The brakes that bound, one after the other, without repeats."""
    held = held_by(played.rows, links_of(played.rows, sender="client")[link])
    found: list[str] = []
    for one in held:
        if not found or found[-1] != one.brake:
            found.append(one.brake)
    return found


def last(played, link=0):
    """What holds a link when the run rests."""
    return held_by(played.rows, links_of(played.rows, sender="client")[link])[-1]


def test_unconfirmed_holds_who_is_granted_nothing_more_and_has_no_credit():
    """A stalled queue: credit is withheld first, and binds when it is used up."""
    stalled = then(then(publishing(), "stall"), "publish", count=400, rate=0)
    end = last(stalled)
    assert end.brake == "unconfirmed"
    assert end.brakes == ("unconfirmed", "link-credit")
    assert (end.link_credit, end.withheld) == (0, True)
    assert end.available > 0
    early = [
        one
        for one in held_by(stalled.rows, links_of(stalled.rows, sender="client")[0])
        if one.withheld and one.link_credit
    ]
    assert all(one.brake != "unconfirmed" for one in early)
    assert last(then(stalled, "resume")).brake == "no-message"


def test_link_credit_alone_holds_while_the_next_grant_is_on_its_way():
    """All confirmed, nothing withheld: the flow is on the wire."""
    burst = then(publishing(service_us="0"), "publish", count=400, rate=0)
    assert "link-credit" in names_in_order(burst)
    assert "unconfirmed" not in names_in_order(burst)


def test_an_alarm_holds_from_the_flow_on_that_closes_the_window():
    """A flow that names no link brings it; when the alarm ends a closed window is left."""
    busy = then(publishing(), "publish", count=60)
    at = [row.seq for row in busy.rows if row.kind == "transfer"][10]
    held = busy.act(at, "alarm")
    link = links_of(held.rows, sender="client")[0]
    states = held_by(held.rows, link)
    rung = next(row.seq for row in held.rows if row.event == "alarm-set")
    assert states[rung].alarms == ("memory",)
    assert states[rung].brake != "alarm"
    assert last(held).brakes == ("alarm", "session-window")
    first = next(seq for seq, state in enumerate(states) if state.window == 0)
    assert held.rows[first].link is None
    assert held.rows[first].event == "received"
    cleared = then(held, "clear")
    names = names_in_order(cleared)
    assert names.index("alarm") < names.index("session-window")
    assert last(cleared).brake == "no-message"


def test_of_two_alarms_the_last_to_end_opens_the_window():
    """Alarms are told apart by resource."""
    played = then(then(publishing(), "alarm"), "alarm", resource="disk")
    played = then(played, "publish", count=1)
    assert last(played).alarms == ("memory", "disk")
    assert last(then(played, "clear")).brake == "alarm"
    both = then(then(played, "clear"), "clear", resource="disk")
    assert last(both).brake == "no-message"


def test_tcp_holds_who_has_credit_and_window_and_a_full_socket():
    """A broker that does not read: the octets in flight fill the wire."""
    played = publishing(socket_octets=2000)
    played = then(played, "hold", direction="c2b")
    played = then(played, "publish", count=100, rate=0)
    end = last(played)
    assert end.brakes == ("tcp",)
    assert end.link_credit > 0
    assert end.window > 0
    assert end.full
    freed = then(played, "release", direction="c2b")
    assert last(freed).brake == "no-message"
    assert sum(row.kind == "transfer" and row.event == "sent" for row in freed.rows) == 100


def test_the_session_window_holds_where_no_alarm_is_on():
    """A window of three frames and a message of more: one credit is not enough."""
    small = replace(presets.get("spec"), incoming_window=3, incoming_window_regrant_at=0)
    played = then(publishing(small), "publish", count=20, rate=0)
    assert "session-window" in names_in_order(played)
    assert "alarm" not in names_in_order(played)


@pytest.mark.parametrize("preset", ["spec", "rmq4.0", "rmq4.3"])
def test_a_row_and_the_fold_name_the_same_brakes(preset):
    """Two ways to one function: a row of the link's sender, and the fold up to it."""
    played = publishing(preset, queues=2, service_us="50,2000", socket_octets=6000)
    played = then(played, "publish", count=300, rate=0)
    checked = 0
    for link in links_of(played.rows, sender="client"):
        for row, held in zip(played.rows, held_by(played.rows, link), strict=True):
            if row.brake is not None and link_scope(row) == link:
                assert held.brakes == row.brakes, row.seq
                checked += 1
    assert checked > 500


ACTS = [
    ("publish", {"count": 60, "rate": 0}),
    ("publish", {"queue": "q2", "count": 3}),
    ("stall", {}),
    ("resume", {}),
    ("alarm", {}),
    ("clear", {}),
    ("hold", {"direction": "c2b"}),
    ("release", {"direction": "c2b"}),
    ("slow", {"queue": "q2", "service_us": 3000}),
]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ACTS), st.floats(0.5, 1)), max_size=7))
def test_whatever_happens_brakes_are_what_the_counters_say(acts):
    """One binding brake, the first that holds; all that hold are listed; no brake is invented."""
    played = publishing(queues=2, socket_octets=3000)
    for (name, arguments), where in acts:
        try:
            at = max(played.start_seq, int(where * played.rows[-1].seq))
            played = played.act(at, name, **arguments)
        except ActionError:
            continue
    for link in links_of(played.rows, sender="client"):
        held = held_by(played.rows, link)
        for one in held:
            assert list(one.brakes) == [name for name in brakes.ORDER if name in one.brakes]
            assert one.brake == (one.brakes[0] if one.brakes else "none")
            assert ("link-credit" in one.brakes) == (one.known and one.link_credit == 0)
            assert ("session-window" in one.brakes) == (one.known and one.window == 0)
            if "alarm" in one.brakes:
                assert one.alarms
        spans = blocked_intervals(played.rows, held)
        assert all(begin < end for begin, end, _ in spans)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        assert sum(blocked_us(played.rows, held).values()) == sum(e - b for b, e, _ in spans)
        between = zip(itertools.pairwise(row.t_us for row in played.rows), held, strict=False)
        blocked = sum(e - b for (b, e), one in between if brakes.is_blocked(one.brake))
        assert blocked == sum(e - b for b, e, _ in spans)


def test_a_slice_knows_what_blocks_as_the_whole_run_does():
    """Withheld credit, an alarm and a closed window that began before it still block in it."""
    played = then(publishing(queues=2), "stall")
    for name, arguments in (
        ("publish", {"count": 200}), ("alarm", {}), ("publish", {"queue": "q2", "count": 3}),
        ("resume", {}),
    ):  # fmt: skip
        played = then(played, name, **arguments)
    rows = played.rows
    acts = [row.seq for row in rows if row.event == "action"]
    whole = {link: held_by(rows, link) for link in links_of(rows, sender="client")}
    for first in (acts[2], acts[3] + 2):
        found = cut_rows(rows, rows[first].seq, first=first)
        assert found.earlier.blocking
        for link, expected in whole.items():
            braking = Braking(link, found.start, found.earlier.blocking)
            seen = [braking.apply(row).brakes for row in rows[first:]]
            assert seen == [one.brakes for one in expected[first:]]
