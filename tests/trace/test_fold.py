"""A view is a fold over rows: the last value counts, and going back is folding less."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.rows import BROKER_END, CLIENT_END, Hand, race, same, state_after
from workbench.trace import Fold, Row, Scope, State

LINK = Scope("link", "c1", 1, "l", "broker", 1)
SESSION = Scope("session", "c1", 1)


def test_each_end_has_its_own_ledger():
    """In the middle of the race the two ends hold different numbers, both right."""
    state = state_after(race(), upto=3)
    assert state.ledgers[CLIENT_END, LINK]["link_credit"] == 6
    assert state.ledgers[BROKER_END, LINK]["link_credit"] == 2
    after = state_after(race())
    assert after.ledgers[CLIENT_END, LINK]["link_credit"] == 5
    assert after.ledgers[BROKER_END, LINK]["link_credit"] == 5
    assert sorted(who for who, about in after.ledgers if about == LINK) == [BROKER_END, CLIENT_END]


def test_a_frame_is_in_flight_between_its_two_rows():
    """Sent without received; frames of a capture fly for nobody."""
    rows = race()
    flying = [
        [flight.kind for flight in state_after(rows, upto).in_flight.values()] for upto in range(6)
    ]
    assert flying == [["attach"], [], ["flow"], ["flow", "transfer"], ["transfer"], []]
    hand = Hand()
    hand.observed("client", "flow", {"link_credit": 1}, handle=0)
    assert state_after(hand.rows).in_flight == {}


def test_three_steps_back_and_three_forward_is_the_same_state():
    """A state depends on the rows before it and on nothing else."""
    rows = race()
    there = state_after(rows)
    back = state_after(rows, upto=2)
    forward = state_after(rows[3:], start=back)
    assert back != there
    assert same(forward, there)
    assert same(state_after(rows, upto=2), back)


def test_a_snapshot_does_not_change_with_later_rows():
    """A view may keep the state it shows."""
    folding = Fold()
    rows = race()
    folding.apply(rows[0])
    kept = folding.state()
    before = deepcopy(kept)
    for row in rows[1:]:
        folding.apply(row)
    assert same(kept, before)


def test_a_row_leaves_the_groups_it_does_not_carry():
    """Null in a ledger means not in this row's scope, so the last value stays."""
    hand = Hand()
    hand.sent("broker", "flow", {"delivery_count": 1, "next_outgoing_id": 9}, handle=0)
    hand.sent("broker", "flow", {"next_outgoing_id": 10})
    state = state_after(hand.rows)
    assert state.ledgers[BROKER_END, LINK] == {"delivery_count": 1}
    assert state.ledgers[BROKER_END, SESSION] == {"next_outgoing_id": 10}


def test_unknown_clears_a_counter():
    """What cannot be known any more is shown as such, not as it last was."""
    hand = Hand()
    hand.observed("broker", "transfer", {"delivery_count": 1, "link_credit": 4}, handle=0)
    row = hand.observed("broker", "transfer", {"delivery_count": 2}, handle=0)
    row.unknown = ("link_credit",)
    folding = Fold()
    folding.apply(hand.rows[0])
    changes = folding.apply(row)
    assert [(change.field, change.before, change.after) for change in changes] == [
        ("delivery_count", 1, 2),
        ("link_credit", 4, None),
    ]
    assert folding.state().ledgers["wire", LINK] == {"delivery_count": 2, "link_credit": None}


def test_links_of_one_name_are_told_apart():
    """Direction, session and attach number belong to a link's name."""
    rows = []
    for place, (sender, attach_no) in enumerate([("client", 1), ("broker", 1), ("broker", 2)]):
        rows.append(
            Row(
                run="r",
                seq=place,
                t_us=0,
                vantage="broker",
                event="sent",
                protocol="amqp-1.0",
                connection="c1",
                session=1,
                link="pair",
                link_sender=sender,
                attach_no=attach_no,
                ledger={"link_credit": place},
            )
        )
    assert len(state_after(rows).ledgers) == 3


def test_brake_and_actor_groups_are_kept_apart():
    """A brake belongs to a link's sender, a mailbox to an actor."""
    hand = Hand()
    hand.sent("broker", "transfer", {"link_credit": 0}, handle=0)
    hand.rows[0].brake = "link-credit"
    hand.internal("enqueue", "queue:q", queue="q", ledger={"queue_ready": 4})
    state = state_after(hand.rows)
    assert state.brakes == {(BROKER_END, LINK): "link-credit"}
    assert state.ledgers["queue:q", Scope("actor", queue="q")] == {"queue_ready": 4}


def test_each_protocol_s_counters_have_a_scope_of_their_own():
    """Prefetch is a channel's or a consumer's, credit a destination's, hop credit a next hop's."""
    hand = Hand()
    place = {"connection": "c1", "session": 2}
    channel = {"prefetch_count": 10, "unacknowledged": 4}
    hand.internal("note", "broker", **place, ledger=channel)
    hand.internal("note", "broker", **place, consumer="ctag", ledger={"unacknowledged": 1})
    hand.internal("note", "broker", **place, link="d", ledger={"credit_octets": 99})
    hand.internal("note", "broker", **place, ledger={"incomplete_commands": 3})
    hand.internal("block", "reader:c1", **place, ledger={"hop_credit": 0})
    hand.internal("block", "channel:c1/2", connection="c1", queue="q", ledger={"hop_credit": 7})
    state, here = state_after(hand.rows), ("c1", 2)
    assert state.ledgers["broker", Scope("prefetch", *here)] == channel
    assert state.ledgers["broker", Scope("prefetch", *here, consumer="ctag")] == {
        "unacknowledged": 1
    }
    assert state.ledgers["broker", Scope("destination", *here, link="d")] == {"credit_octets": 99}
    assert state.ledgers["broker", Scope("commands", *here)] == {"incomplete_commands": 3}
    assert state.ledgers["reader:c1", Scope("hop", *here)] == {"hop_credit": 0}
    assert state.ledgers["channel:c1/2", Scope("hop", "c1", queue="q")] == {"hop_credit": 7}


def test_a_capture_keeps_the_windows_of_both_ends_apart():
    """One vantage logs both ends of a session; messages both ways must not mix their windows."""
    hand = Hand()
    hand.observed("broker", "transfer", {"next_outgoing_id": 7}, handle=0)
    hand.sender = "client"
    hand.observed("client", "transfer", {"next_outgoing_id": 1}, handle=0)
    hand.observed("client", "flow", {"remote_incoming_window": 5}, incoming_window=5)
    state = state_after(hand.rows)
    ends = {
        scope.link_sender: ledger
        for (_, scope), ledger in state.ledgers.items()
        if scope.group == "session"
    }
    assert ends == {
        "broker": {"next_outgoing_id": 7, "remote_incoming_window": 5},
        "client": {"next_outgoing_id": 1},
    }


COUNTERS = st.dictionaries(
    st.sampled_from(["delivery_count", "link_credit", "next_outgoing_id", "queue_ready"]),
    st.integers(0, 2**32 - 1),
    max_size=3,
)


DRAWN = {
    "vantage": st.sampled_from([CLIENT_END, BROKER_END]),
    "event": st.sampled_from(["sent", "received", "enqueue"]),
    "frame_id": st.none() | st.integers(0, 4),
    "session": st.sampled_from([None, 1]),
    "link": st.sampled_from([None, "l"]),
    "ledger": st.none() | COUNTERS,
    "unknown": st.sampled_from([(), ("link_credit",)]),
}
LENGTHS = st.integers(1, 12)


@st.composite
def runs(draw):
    fixed = {"run": "r", "protocol": "amqp-1.0", "connection": "c1"}
    return [
        Row(seq=seq, t_us=seq, **fixed, **{name: draw(some) for name, some in DRAWN.items()})
        for seq in range(draw(LENGTHS))
    ]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(runs(), st.data())
def test_a_slice_with_its_start_folds_to_the_state_of_the_whole(rows, data):
    """A slice cut out of the middle shows the right state at once."""
    cut = data.draw(st.integers(-1, len(rows) - 1))
    start = state_after(rows, upto=cut)
    assert state_after(rows[cut + 1 :], start=start) == state_after(rows)
    assert state_after([], start=start) == start
    assert state_after([]) == State()
