"""The scenario of lesson 04: windows of sessions, in every preset, read off the rows."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import presets
from workbench.amqp10.errors import ErrorCondition
from workbench.scenarios import ActionError, ParameterError, Run, run
from workbench.trace import braking
from workbench.trace.braking import links_of
from workbench.trace.explain import explain
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT, Row

RABBITS = pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])
ALL = pytest.mark.parametrize("preset", presets.names(presets.AMQP_1_0))
LARGE = {"messages": 1, "message_bytes": 4500, "max_frame_size": 512}


def frames(
    played: Run, kind: str, peer: str, event: str = SENT, *, after: int = -1, **columns: Any
) -> list[Row]:
    """Rows of one end's frames."""
    return [
        row
        for row in played.rows
        if (row.kind, row.from_peer, row.event) == (kind, peer, event)
        and row.seq > after
        and all(getattr(row, name) == value for name, value in columns.items())
    ]


def transfers(played: Run, peer: str = BROKER, event: str = SENT, **more: Any) -> int:
    return len(frames(played, "transfer", peer, event, **more))


def then(played: Run, act: str, **arguments: Any) -> Run:
    return played.act(played.rows[-1].seq, act, **arguments)


def received(played: Run) -> dict[str, int]:
    """Messages that have arrived, by link."""
    consumers = played.world.peers["client"].consumers
    return {name: consumer.received for name, consumer in consumers.items()}


def buffered(played: Run) -> list[int]:
    """How many messages the first session told that it holds, at each change."""
    return [
        int((row.ledger or {})["mailbox"])
        for row in played.rows
        if row.kind == "buffer" and row.vantage == "session:c1/1"
    ]


def window_flows(played: Run, after: int = -1) -> list[int]:
    """incoming-window of the broker's flows about no link."""
    return [
        row.frame["incoming_window"]
        for row in frames(played, "flow", BROKER, after=after)
        if row.frame is not None and row.frame.get("handle") is None
    ]


@ALL
def test_a66_one_credit_and_ten_frames_through_a_window_of_three(preset) -> None:
    """Three frames pass, the credit is used up, and the rest waits for the window alone."""
    begun = run("windows", preset, {**LARGE, "client_window": 3})
    granted = begun.act(begun.start_seq, "grant", link_credit=1)
    assert transfers(granted) == 3
    row = frames(granted, "transfer", BROKER)[-1]
    assert (row.ledger["link_credit"], row.ledger["remote_incoming_window"]) == (0, 0)
    assert "session-window" in row.brakes
    more = then(granted, "grant", link_credit=5)
    assert transfers(more) == 3, "credit opens no window"
    rest = then(granted, "open_window", frames=100)
    assert transfers(rest) == 10
    assert received(rest) == {"in1": 1}
    assert frames(rest, "transfer", BROKER)[-1].ledger["link_credit"] == 0


@ALL
def test_a65_a_message_of_ten_frames_costs_the_broker_s_window_ten_and_the_credit_one(
    preset,
) -> None:
    """The other way: the client publishes to a broker that takes small frames."""
    given = {"consumers": 0, "publisher": True, "message_bytes": 4500, "broker_frame_size": 512}
    begun = run("windows", preset, given)
    sent = begun.act(begun.start_seq, "publish", count=1)
    told = frames(sent, "transfer", CLIENT, RECEIVED)
    first, last = told[0].ledger, told[-1].ledger
    assert last["incoming_window"] == first["incoming_window"] - len(told) + 1
    assert len(told) == 10
    assert sent.world.broker.queues["t"].queue.ready == 1
    granted = presets.get(preset).publisher_credit
    assert last["link_credit"] == granted - 1


@ALL
@pytest.mark.parametrize("start", [0, 4294967290])
def test_a67_a_window_told_while_frames_are_on_their_way_counts_them(preset, start) -> None:
    """remote-incoming-window := next-incoming-id + incoming-window − next-outgoing-id [2.5.6]."""
    given = {"messages": 30, "client_window": 10, "broker_first_id": start, "link_credit": 30}
    given |= {"latency_us": 1000}  # or nothing would be on its way where a preset has none
    begun = run("windows", preset, given)
    fourth = frames(begun, "transfer", BROKER, RECEIVED)[3]
    told = begun.act(fourth.seq, "open_window", frames=6)
    (flow,) = frames(told, "flow", CLIENT, after=fourth.seq)
    assert flow.frame["next_incoming_id"] == (start + 4) % 2**32
    heard = next(
        row for row in told.rows if row.frame_id == flow.frame_id and row.event == RECEIVED
    )
    before = (
        transfers(told)
        if heard.seq > told.rows[-1].seq
        else sum(row.seq < heard.seq for row in frames(told, "transfer", BROKER))
    )
    assert before == 10, "all ten are under way when the flow arrives"
    assert heard.ledger["remote_incoming_window"] == max(0, 4 + 6 - before)
    formula = list(explain(told.rows))[heard.seq].formula
    assert formula.startswith(f"{(start + 4) % 2**32} + 6 − {(start + 10) % 2**32} ")
    assert transfers(told) == 10


@RABBITS
def test_a68_the_broker_opens_its_window_at_half(preset) -> None:
    """After the 200th transfer, and after each 200 more; with another window at its half."""
    for window in (None, 10):
        given = {"consumers": 0, "publisher": True}
        if window:
            given["broker_window"] = window
        begun = run("windows", preset, given)
        told = begun.act(begun.start_seq, "publish", count=1000)
        size = window or 400
        assert window_flows(told) == [size] * (1000 // (size // 2))
        lowest = min(
            row.ledger["incoming_window"] for row in frames(told, "transfer", CLIENT, RECEIVED)
        )
        assert lowest == size // 2


@RABBITS
def test_a75_the_session_holds_what_max_queue_credit_allows_and_no_more(preset) -> None:
    """Huge credit, window 5: 256 in all have left the queue; each consumer adds its own batch."""
    for consumers in (1, 3):
        given = {"messages": 1000, "client_window": 5, "link_credit": 2147483647}
        played = run("windows", preset, {**given, "consumers": consumers})
        assert transfers(played) == 5
        assert max(buffered(played)) == 256 * consumers - 5
        assert played.world.broker.queues["q"].queue.unsettled == 256 * consumers


def test_a75_under_the_specification_s_preset_nothing_waits_in_a_session() -> None:
    """There the queue keeps what the window does not let out."""
    given = {"messages": 1000, "client_window": 5, "link_credit": 2147483647}
    played = run("windows", "spec", given)
    assert (transfers(played), buffered(played)) == (5, [])
    assert played.world.broker.queues["q"].queue.ready == 995


@RABBITS
def test_a69_an_alarm_closes_the_window_and_a_client_that_heeds_it_waits(preset) -> None:
    """Nothing more is sent; what has been published waits, and goes when the alarm is over."""
    given = {"publisher": True, "messages": 20}
    begun = run("windows", preset, given)
    alarmed = then(begun.act(begun.start_seq, "alarm"), "publish", count=50)
    assert window_flows(alarmed) == [0]
    assert transfers(alarmed, CLIENT) == 0
    cleared = then(alarmed, "clear")
    assert window_flows(cleared) == [0, 400]
    assert transfers(cleared, CLIENT) == 50


@RABBITS
@pytest.mark.parametrize("window", [400, 7])
def test_a69_the_frame_after_the_tolerated_ones_ends_the_session(preset, window) -> None:
    """As many as the window was are taken from a client that ignores the alarm, and no more."""
    given = {"consumers": 0, "publisher": True, "broker_window": window}
    begun = run("windows", preset, given)
    alarmed = then(begun.act(begun.start_seq, "alarm"), "publish", count=window)
    taken = then(alarmed, "ignore_window")
    assert taken.world.peers["client"].ended == {}
    assert taken.world.broker.queues["t"].queue.ready == window
    over = then(taken, "publish", count=1)
    (error,) = over.world.peers["client"].ended.values()
    assert error.condition == ErrorCondition.WINDOW_VIOLATION
    assert over.world.broker.queues["t"].queue.ready == window
    assert len(frames(over, "end", BROKER)) == 1
    row = frames(over, "transfer", CLIENT)[-1]
    assert row.ledger["remote_incoming_window"] == 0, "the client knew that it was closed"


@RABBITS
def test_a70_consumers_of_the_same_session_go_on_under_an_alarm(preset) -> None:
    """Credit, transfers and settlement pass; only what the client sends as messages waits."""
    begun = run("windows", preset, {"publisher": True, "messages": 20})
    alarmed = begun.act(begun.start_seq, "alarm")
    granted = then(alarmed, "grant", link_credit=10)
    assert received(granted)["in1"] == 10
    settled = then(granted, "acknowledge")
    assert settled.world.broker.queues["q"].queue.unsettled == 0
    later = then(settled, "begin_session")
    assert received(later)["express"] == 3


@ALL
def test_a64_a_closed_window_of_one_session_holds_no_other(preset) -> None:
    """The first session is full; the second, on the same connection, is served at once."""
    given = {"messages": 100, "client_window": 5, "link_credit": 100}
    full = run("windows", preset, given)
    assert received(full) == {"in1": 5}
    second = then(full, "begin_session")
    assert received(second) == {"in1": 5, "express": 3}
    assert list(second.world.wires) == ["c1"]
    assert {row.session for row in frames(second, "transfer", BROKER)} == {1, 2}


@RABBITS
def test_a64_a_session_that_has_much_to_do_delays_no_other(preset) -> None:
    """Frames of the express session pass those that came before them on the busy one."""
    given = {"consumers": 0, "publisher": True, "session_us": 1000, "link_credit": 0}
    begun = run("windows", preset, given)
    both = then(begun, "begin_session", link_credit=0)
    busy = then(both, "publish", count=100)
    published = next(
        row.seq for row in busy.rows if row.kind == "publish" and row.event == "action"
    )
    urgent = busy.act(published + 1, "publish", count=1, link="out2")
    ours = frames(urgent, "transfer", CLIENT, RECEIVED)
    place = [row.link for row in ours].index("out2")
    assert place < 5
    assert len(ours) == 101


def held_by(played: Run, brake: str) -> bool:
    """Whether a brake ever held the broker's link."""
    (link,) = links_of(played.rows, sender=BROKER)
    return any(brake in held.brakes for held in braking.held_by(played.rows, link))


@RABBITS
def test_a76_each_resource_stalls_at_its_own_layer(preset) -> None:
    """A link by credit, a session by its window, what leaves by TCP: each alone, and named."""
    plenty = {"messages": 1500, "link_credit": 2000, "latency_us": 100}
    credit = run("windows", preset, {**plenty, "link_credit": 10})
    window = run("windows", preset, {**plenty, "client_window": 10})
    writer = run("windows", preset, {**plenty, "writer_us": 2000})
    assert [held_by(credit, name) for name in ("link-credit", "session-window", "tcp")] == [
        True,
        False,
        False,
    ]
    assert [held_by(window, name) for name in ("session-window", "tcp")] == [True, False]
    assert [held_by(writer, name) for name in ("session-window", "tcp")] == [False, True]
    assert received(writer)["in1"] == 1500
    unread = run("windows", preset, {**plenty, "socket_octets": 20_000})
    unread = unread.act(unread.start_seq, "hold", direction="b2c")
    assert held_by(unread, "tcp")
    assert max(buffered(unread)) <= 256
    assert unread.world.broker.queues["q"].queue.ready > 0
    assert transfers(then(unread, "release", direction="b2c"), event=RECEIVED) == 1500


@ALL
def test_a_client_that_opens_its_window_by_itself_gets_everything(preset) -> None:
    """A window of three, opened again at half: ten frames come without a hand."""
    begun = run("windows", preset, {**LARGE, "client_window": 3, "reopens": True, "link_credit": 1})
    assert received(begun) == {"in1": 1}
    assert transfers(begun) == 10
    assert begun.rested


@pytest.mark.parametrize(
    ("act", "arguments", "why"),
    [
        ("publish", {"count": 1}, "this client publishes nothing; legal in a run with publisher"),
        ("clear", {}, "no alarm is on; legal now: alarm"),
        ("grant", {"link_credit": 1, "link": "in2"}, "link in2 is not attached; legal now: in1"),
        ("open_window", {"frames": 1, "session": 2}, "session 2 is not there; legal now: 1"),
        ("acknowledge", {}, "nothing of in1 is unsettled; legal now: grant, open_window"),
        ("acknowledge", {"link": "express"}, "link express is not attached; legal now: in1"),
    ],
)
def test_an_act_that_is_not_possible_says_what_would_be(act, arguments, why) -> None:
    """The text is part of the lesson."""
    begun = run("windows")
    with pytest.raises(ActionError, match=why):
        then(begun, act, **arguments)


def test_a_third_session_and_a_link_of_an_ended_one_are_refused() -> None:
    """Two sessions are what this run has; one that the broker ended has no links any more."""
    begun = run("windows", "rmq4.3", {"publisher": True, "broker_window": 1})
    two = then(begun, "begin_session")
    with pytest.raises(ActionError, match="2 sessions were begun"):
        then(two, "begin_session")
    over = then(then(then(begun, "alarm"), "publish", count=2), "ignore_window")
    with pytest.raises(
        ActionError, match="link in1 is gone with its session, which the broker has ended"
    ):
        then(over, "grant", link_credit=1)
    with pytest.raises(ActionError, match="session 1 is not there; legal now: none"):
        then(over, "open_window", frames=1)


def test_a_run_without_links_or_with_too_much_in_it_is_refused() -> None:
    """Before anything is played."""
    with pytest.raises(ParameterError, match="there is no link"):
        run("windows", parameters={"consumers": 0})
    with pytest.raises(ParameterError, match="too much for one run"):
        run("windows", parameters={"messages": 20_000, "message_bytes": 100_000})
    begun = run("windows", parameters={"publisher": True, "message_bytes": 1_000_000})
    with pytest.raises(ActionError, match="too much; legal together"):
        then(begun, "publish", count=101)


@ALL
def test_the_same_run_twice_has_the_same_rows(preset) -> None:
    """A run is a function of its tuple, service times included."""
    given = {"messages": 50, "link_credit": 50, "session_us": 7, "writer_us": 90, "reader_us": 3}
    first, second = (run("windows", preset, given) for _ in range(2))
    assert first.rows == second.rows
    assert first.name == second.name
