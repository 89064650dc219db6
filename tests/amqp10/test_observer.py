"""The observer: right counters from wire fields alone, and none where they cannot be known.

That it knows what the ends of a link know: `test_link_flow`, `test_link_properties`.
"""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import Accepted
from workbench.amqp10.observer import ConnectionObserver
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Role,
    Transfer,
)

WRAP = 2**32
CLIENT, BROKER = True, False


class Wire:
    """Says frames to an observer; the broker sends over link `q`, the client receives."""

    def __init__(self, observer: ConnectionObserver | None = None, first: int = 0, out: int = 0):
        self.observer = observer or ConnectionObserver()
        self.first, self.out = first, out
        self.ids = count()

    def say(self, from_client: bool, what: object, channel: int = 0):
        return self.observer.see(Frame(channel, what), from_client)

    def begin(self, window: int = 100):
        self.say(CLIENT, Begin(next_outgoing_id=7, incoming_window=window, outgoing_window=50))
        return self.say(
            BROKER,
            Begin(
                remote_channel=0, next_outgoing_id=self.out, incoming_window=200, outgoing_window=60
            ),
        )

    def attach(self, name: str = "q", client_handle: int = 0, broker_handle: int = 0):
        self.say(CLIENT, Attach(name=name, handle=client_handle, role=Role.RECEIVER))
        sender = {"role": Role.SENDER, "initial_delivery_count": self.first}
        return self.say(BROKER, Attach(name=name, handle=broker_handle, **sender))

    def ready(self, **how):
        self.begin()
        self.attach(**how)
        return self

    def flow(self, from_client: bool, count: int | None, credit: int, handle: int = 0, **more):
        session = {
            "next_incoming_id": self.out if from_client else 7,
            "incoming_window": 100,
            "next_outgoing_id": 7 if from_client else self.out,
            "outgoing_window": 50,
        } | more
        return self.say(
            from_client, Flow(handle=handle, delivery_count=count, link_credit=credit, **session)
        )

    def transfer(self, handle: int = 0, *, first: bool = True, **more):
        head = {"delivery_id": next(self.ids), "delivery_tag": b"t"} if first else {}
        return self.say(BROKER, Transfer(handle=handle, **head, **more))


def link(scope) -> tuple:
    return scope.link_ledger.get("delivery_count"), scope.link_ledger.get("link_credit")


def test_a_message_of_several_transfers_counts_once_however_more_is_written():
    """more may be absent where it is false, and the id may be repeated or not [2.6.14]."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 3)
    assert link(wire.transfer(more=True)) == (1, 2)
    assert link(wire.transfer(first=False, more=True)) == (1, 2)
    assert link(wire.say(BROKER, Transfer(handle=0, delivery_id=0, more=True))) == (1, 2)
    assert link(wire.transfer(first=False)) == (1, 2)
    assert link(wire.transfer()) == (2, 1)
    assert link(wire.transfer(more=True)) == (3, 0)
    assert link(wire.transfer(first=False, more=True, aborted=True)) == (3, 0)
    assert link(wire.transfer(more=False)) == (4, 0)


def test_a_senders_flow_does_not_grant():
    """Its link-credit is its own view and may be older than a grant that has passed here."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 9)
    assert link(wire.flow(BROKER, 0, 4)) == (0, 9)


def test_available_is_the_senders_word_less_what_it_sent():
    """Not in scope until stated, then down by one per delivery, never below 0."""
    wire = Wire().ready()
    assert "available" not in wire.flow(CLIENT, 0, 9).link_ledger
    assert wire.flow(BROKER, 0, 9, available=1).link_ledger["available"] == 1
    assert [wire.transfer().link_ledger["available"] for _ in range(2)] == [0, 0]


def test_a_flow_without_delivery_count_means_the_initial_one():
    """The receiver may grant before it has seen the sender's attach [2.6.7]."""
    wire = Wire(first=500)
    wire.begin()
    wire.say(CLIENT, Attach(name="q", handle=0, role=Role.RECEIVER))
    assert wire.flow(CLIENT, None, 4).link_ledger["link_credit"] == 4
    sender = {"role": Role.SENDER, "initial_delivery_count": 500}
    assert link(wire.say(BROKER, Attach(name="q", handle=0, **sender))) == (500, 4)
    assert link(wire.transfer()) == (501, 3)


def test_handles_and_channels_differ_by_direction():
    """Each end numbers for itself; name and remote-channel tell what belongs together."""
    observer = ConnectionObserver()
    window = {"incoming_window": 10, "outgoing_window": 10}
    observer.see(Frame(3, Begin(next_outgoing_id=0, **window)), CLIENT)
    observer.see(Frame(9, Begin(remote_channel=3, next_outgoing_id=0, **window)), BROKER)
    for name, mine, theirs in (("a", 0, 1), ("b", 1, 0)):
        observer.see(Frame(3, Attach(name=name, handle=mine, role=Role.RECEIVER)), CLIENT)
        sender = {"role": Role.SENDER, "initial_delivery_count": 0}
        observer.see(Frame(9, Attach(name=name, handle=theirs, **sender)), BROKER)
    flow = {"next_incoming_id": 0, "next_outgoing_id": 0, "delivery_count": 0, **window}
    observer.see(Frame(3, Flow(handle=0, link_credit=5, **flow)), CLIENT)
    scope = observer.see(Frame(9, Transfer(handle=1, delivery_id=0)), BROKER)
    assert (scope.session, scope.link, scope.link_ledger["link_credit"]) == (1, "a", 4)
    scope = observer.see(Frame(9, Transfer(handle=0, delivery_id=1)), BROKER)
    assert (scope.link, scope.link_ledger["link_credit"]) == ("b", 0)


def test_a_pair_of_links_of_one_name_is_two_links():
    """Management clients attach a sender and a receiver of the same name."""
    wire = Wire().ready(name="management-link-pair")
    pair = {"name": "management-link-pair", "handle": 1}
    wire.say(CLIENT, Attach(role=Role.SENDER, initial_delivery_count=40, **pair))
    wire.say(BROKER, Attach(role=Role.RECEIVER, **pair))
    scope = wire.flow(BROKER, 40, 8, handle=1)
    assert (scope.link_sender, scope.attach_no, link(scope)) == ("client", 1, (40, 8))
    scope = wire.flow(CLIENT, 0, 2)
    assert (scope.link_sender, scope.attach_no, link(scope)) == ("broker", 1, (0, 2))


def test_a_link_attached_again_starts_anew():
    """Handles are free after detach; the second attach of the name has a count of its own."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 5)
    wire.transfer()
    wire.say(CLIENT, Detach(handle=0))
    wire.say(BROKER, Detach(handle=0))
    wire.first = 77
    scope = wire.attach(client_handle=0, broker_handle=0)
    assert (scope.attach_no, link(scope)) == (2, (77, 0))
    wire.flow(CLIENT, 77, 3)
    assert link(wire.transfer()) == (78, 2)


def test_a_handle_used_again_by_another_link_is_that_link():
    """After detach the number belongs to the next link."""
    wire = Wire().ready()
    wire.say(CLIENT, Detach(handle=0, closed=True))
    wire.say(BROKER, Detach(handle=0, closed=True))
    assert wire.attach(name="other").link == "other"
    assert wire.transfer().link == "other"


def test_sessions_are_numbered_in_order_of_begin():
    """The ordinal goes on when a channel is used again."""
    wire = Wire()
    assert wire.begin().session == 1
    wire.say(CLIENT, End())
    wire.say(BROKER, End())
    assert wire.begin().session == 2


def test_the_session_ledger_is_that_of_the_links_sender():
    """Both brakes of a row, credit and window, hold the same end."""
    wire = Wire(out=WRAP - 1).ready()
    assert wire.flow(CLIENT, 0, 5).session_ledger == {
        "next_outgoing_id": WRAP - 1,
        "outgoing_window": 60,
        "incoming_window": 200,
        "next_incoming_id": 7,
        "remote_incoming_window": 100,
        "remote_outgoing_window": 50,
    }
    assert wire.transfer().session_ledger["next_outgoing_id"] == 0


def test_a_session_flow_concerns_the_end_that_hears_it():
    """next-incoming-id 10, incoming-window 4, own next-outgoing-id 11: 10 + 4 - 11 = 3 [2.5.6]."""
    wire = Wire(out=10).ready()
    wire.flow(CLIENT, 0, 5)
    wire.transfer()
    flow = Flow(next_incoming_id=10, incoming_window=4, next_outgoing_id=7, outgoing_window=1)
    scope = wire.say(CLIENT, flow)
    assert scope.link is None
    assert scope.session_ledger["remote_incoming_window"] == 3
    assert scope.session_ledger["next_outgoing_id"] == 11


def test_dispositions_settle_by_range_and_move_no_credit():
    """unsettled falls by what the range covers; acknowledging grants nothing."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 5)
    assert [wire.transfer().link_ledger["unsettled"] for _ in range(4)] == [1, 2, 3, 4]
    assert wire.transfer(settled=True).link_ledger["unsettled"] == 4
    done = {"role": Role.RECEIVER, "state": Accepted()}
    scope = wire.say(CLIENT, Disposition(first=0, last=2, settled=True, **done))
    assert (scope.link, scope.link_ledger["unsettled"], scope.link_ledger["link_credit"]) == (
        "q", 1, 0,
    )  # fmt: skip
    assert wire.say(CLIENT, Disposition(first=3, **done)).link_ledger["unsettled"] == 1


def test_a_disposition_over_half_the_numbers_takes_no_time():
    """A range is never walked further than there are deliveries."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 5)
    wire.transfer()
    wide = Disposition(role=Role.RECEIVER, first=0, last=2**31 - 1, settled=True)
    assert wire.say(CLIENT, wide).link_ledger["unsettled"] == 0


# -- capture begun in the middle, frames lost


def test_after_lost_frames_of_the_sender_its_count_is_unknown_until_it_states_it():
    """Transfers may have been lost; the limit of the receiver's last flow still holds."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 10)
    wire.observer.lost(BROKER)
    scope = wire.transfer()
    assert scope.link_ledger == {"drain": False}
    assert {"delivery_count", "link_credit"} <= set(scope.unknown)
    assert link(wire.flow(BROKER, 4, 6)) == (4, 6)
    assert link(wire.flow(CLIENT, 2, 10)) == (4, 8)


def test_after_lost_frames_of_the_receiver_the_credit_is_unknown_until_it_grants():
    """A grant may have been lost; the count goes on."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 10)
    wire.observer.lost(CLIENT)
    scope = wire.transfer()
    assert scope.link_ledger["delivery_count"] == 1
    assert "link_credit" in scope.unknown
    assert link(wire.flow(CLIENT, 1, 3)) == (1, 3)


def test_delivery_ids_tell_how_many_messages_of_the_only_link_were_lost():
    """Each delivery has the id after the one before [2.6.12], and counts once."""
    wire = Wire(first=100).ready()
    wire.flow(CLIENT, 100, 10)
    assert link(wire.transfer()) == (101, 9)
    wire.observer.lost(BROKER)
    assert "delivery_count" in wire.transfer(first=False).unknown  # of which message it is
    for _ in range(3):
        next(wire.ids)
    assert link(wire.transfer(more=True)) == (105, 5)
    wire.observer.lost(BROKER)
    assert link(wire.say(BROKER, Transfer(handle=0, delivery_id=4))) == (105, 5)
    assert link(wire.transfer()) == (106, 4)


@pytest.mark.parametrize(
    "what", ["link", "earlier", "loss", "drain", "crossing", "ended", "flow", "back"]
)
def test_delivery_ids_tell_nothing_where_they_may_be_of_something_else(what):
    """Of another link, or where the count may have moved without a message."""
    wire = Wire().ready()
    if what == "earlier":
        wire.say(CLIENT, Attach(name="other", handle=1, role=Role.RECEIVER))
    wire.flow(CLIENT, 0, 10)
    wire.transfer()
    if what in ("drain", "crossing"):
        wire.flow(CLIENT, 1, 5, drain=True)
        wire.flow(CLIENT, 1, 5)
    if what == "crossing":  # a flow that is no answer to the drain
        wire.flow(BROKER, 1, 9)
    if what == "flow":  # it says how many were lost before it, and not which was the last of them
        wire.observer.lost(BROKER)
        assert link(wire.flow(BROKER, 4, 6)) == (4, 6)
    wire.observer.lost(BROKER)
    if what == "link":
        wire.say(CLIENT, Attach(name="other", handle=1, role=Role.RECEIVER))
    if what == "loss":
        wire.observer.lost(CLIENT)
    if what == "ended":
        wire.say(CLIENT, End())
    if what == "back":
        wire.ids = count(WRAP - 5)
    assert "delivery_count" in wire.transfer().unknown


def two_links_behind_a_gap() -> Wire:
    """Of one of them a message was counted; then ids tell nothing, for both may have sent."""
    wire = Wire().ready()
    wire.say(CLIENT, Attach(name="other", handle=1, role=Role.RECEIVER))
    wire.flow(CLIENT, 0, 10)
    wire.transfer()
    wire.observer.lost(BROKER)
    assert "delivery_count" in wire.transfer().unknown
    return wire


def test_where_all_that_was_granted_must_be_used_up_the_count_is_known_again():
    """No less than the receiver has heard of and what passed since, no more than it has granted."""
    wire = two_links_behind_a_gap()
    assert "delivery_count" in wire.flow(CLIENT, 9, 3).unknown
    assert "delivery_count" in wire.transfer().unknown  # one may be on its way to the receiver
    assert "link_credit" in wire.transfer().unknown
    assert link(wire.transfer()) == (12, 0)
    wire.flow(CLIENT, 12, 3)
    assert link(wire.transfer()) == (13, 2)


@pytest.mark.parametrize("what", ["lowered", "lost", "fewer"])
def test_what_was_granted_tells_nothing_where_it_may_have_been_more(what):
    """A limit that was lowered, or one that is missing; and where some credit may be left."""
    wire = two_links_behind_a_gap()
    wire.flow(CLIENT, 7, 2 if what == "lowered" else 4)
    if what == "lost":
        wire.observer.lost(CLIENT)
    sent = [wire.transfer() for _ in range({"lowered": 2, "lost": 4, "fewer": 3}[what])]
    assert all({"delivery_count", "link_credit"} <= set(one.unknown) for one in sent)


def test_of_a_link_whose_handle_is_not_known_nothing_is_counted_out():
    """Its messages pass under a handle that no attach explains."""
    wire = Wire()
    wire.begin()
    wire.say(CLIENT, Attach(name="q", handle=0, role=Role.RECEIVER))
    wire.observer.lost(BROKER)
    wire.flow(CLIENT, 0, 2)
    wire.transfer(5)
    wire.transfer(5)
    scope = wire.flow(CLIENT, 2, 0)
    assert (scope.link, "delivery_count" in scope.unknown) == ("q", True)


def test_a_transfer_that_may_be_a_later_part_makes_the_count_unknown_again():
    """With its id it may begin a message or go on with one whose first part was lost."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 10)
    wire.observer.lost(BROKER)
    wire.flow(BROKER, 4, 6)
    assert "delivery_count" in wire.transfer().unknown
    wire.flow(BROKER, 5, 5)
    assert link(wire.transfer()) == (6, 4)


def test_a_message_counts_from_the_first_transfer_of_it_that_there_is():
    """Behind a gap, and where a capture begins."""
    wire = Wire().ready()
    wire.transfer(more=True)
    wire.observer.lost(BROKER)
    wire.transfer(first=False, more=True)  # a later part of what was seen to begin
    wire.transfer(first=False)
    (seen,) = wire.observer.links
    assert seen.deliveries == 1
    wire.observer.lost(BROKER)
    assert wire.transfer().link_ledger["delivery_count"] == 2
    assert seen.deliveries == 2
    wire.observer.lost(BROKER)
    wire.transfer(first=False)  # all before its end is lost
    assert seen.deliveries == 3
    begun = Wire(ConnectionObserver(from_start=False))
    begun.transfer()
    begun.transfer()
    assert [one.deliveries for one in begun.observer.links] == [2]


def test_a_link_attached_before_the_capture_has_no_name_and_no_counters():
    """Nothing tells which handle of the other end belongs to it: a flow there is no grant here."""
    observer = ConnectionObserver(from_start=False)
    wire = Wire(observer)
    scope = wire.transfer()
    assert (scope.session, scope.link, scope.link_sender, scope.link_ledger) == (
        1,
        None,
        "broker",
        {},
    )
    assert {"delivery_count", "link_credit", "drain"} <= set(scope.unknown)
    assert "link_credit" in wire.flow(CLIENT, 5, 10).unknown
    assert "link_credit" in wire.transfer().unknown
    assert len(observer.assumptions) == 2


def test_numbers_that_agree_join_the_two_ends_of_a_link():
    """A flow of the sender that states the limit of the receiver's flow shows them to be one."""
    wire = Wire(ConnectionObserver(from_start=False))
    wire.transfer()
    wire.flow(CLIENT, 5, 10)
    scope = wire.flow(BROKER, 9, 6)
    assert link(scope) == (9, 6)
    assert link(wire.flow(CLIENT, 9, 20)) == (9, 20)


def test_numbers_that_do_not_agree_join_nothing():
    """The flow was for another link, or has not arrived: which, cannot be known."""
    wire = Wire(ConnectionObserver(from_start=False))
    wire.transfer()
    wire.flow(CLIENT, 5, 10)
    scope = wire.flow(BROKER, 9, 3)
    assert link(scope) == (9, None)
    assert "link_credit" in scope.unknown


def test_a_senders_flow_tells_all_while_no_grant_was_seen():
    """It states its own count and credit; nothing has passed that could change them."""
    wire = Wire(ConnectionObserver(from_start=False))
    wire.transfer()
    assert link(wire.flow(BROKER, 9, 3)) == (9, 3)
    assert link(wire.transfer()) == (10, 2)


def late(observer: ConnectionObserver | None = None):
    """A link attached before; twice its receiver has all that was sent when it grants."""
    wire = Wire(observer or ConnectionObserver(from_start=False))
    for told in (5, 6, 7):
        wire.transfer()
        wire.flow(CLIENT, told, 3)
    return wire


def test_a_limit_that_is_used_up_tells_the_count():
    """The receiver has 7 and allows 3 more: behind these the sender has counted 10, no less."""
    wire = late()
    for _ in range(2):
        assert {"delivery_count", "link_credit"} <= set(wire.transfer().unknown)
    assert link(wire.transfer()) == (10, 0)
    assert link(wire.flow(CLIENT, 8, 4)) == (10, 2)
    assert link(wire.transfer()) == (11, 1)


def test_a_receiver_that_is_behind_makes_the_count_no_less():
    """What it has not taken in yet was sent all the same."""
    wire = late()
    wire.transfer()
    wire.transfer()
    wire.flow(CLIENT, 8, 3)  # it has one of the two
    assert "link_credit" in wire.transfer().unknown
    wire.transfer()
    assert link(wire.flow(CLIENT, 9, 2)) == (11, 0)


def test_flows_that_do_not_keep_in_step_tell_no_count():
    """They are another link's: the handles of the two ends have nothing to do with each other."""
    wire = Wire(ConnectionObserver(from_start=False))
    wire.transfer()
    for told in (5, 9, 14, 20):
        wire.flow(CLIENT, told, 2)
        assert "delivery_count" in wire.transfer().unknown
        assert "delivery_count" in wire.transfer().unknown


def test_lost_frames_leave_the_least_that_was_counted():
    """Some of the sender's are missing: it is at the limit when it has been seen to reach it."""
    wire = late()
    for _ in range(3):
        wire.transfer()
    wire.observer.lost(BROKER)
    wire.flow(CLIENT, 10, 3)
    wire.transfer(first=False)
    wire.transfer()
    wire.transfer()
    assert link(wire.transfer()) == (13, 0)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["send", "take", "grant"]), st.integers(1, 4)), min_size=30
    ),
    first=st.sampled_from([0, WRAP - 7, WRAP // 2 - 3]),
    before=st.integers(0, 12),
)
def test_what_a_late_observer_knows_is_true(steps, first, before):
    """Beside one that was there from the attach, however far the receiver lags behind."""
    whole, part = Wire(first=first).ready(), ConnectionObserver(from_start=False)
    seen = [whole.flow(CLIENT, first, 6)]
    sent = taken = 0
    limit = 6
    for number, (what, times) in enumerate(steps):
        if what == "take":
            taken = min(sent, taken + times)
            continue
        for _ in range(min(times, limit - sent) if what == "send" else 1):
            if what == "send":
                sent += 1
                said = BROKER, Transfer(handle=0, delivery_id=sent, delivery_tag=b"t")
            else:
                limit = max(limit, taken + 2 + times)
                told = {"delivery_count": (first + taken) % WRAP, "link_credit": limit - taken}
                session = {"incoming_window": 9, "next_outgoing_id": 0, "outgoing_window": 9}
                said = CLIENT, Flow(handle=0, **told, **session)
            truth = whole.say(*said)
            if number >= before:
                found = part.see(Frame(0, said[1]), said[0])
                for name in ("delivery_count", "link_credit"):
                    if name in (found.link_ledger or {}):
                        assert found.link_ledger[name] == truth.link_ledger[name]
    assert seen


def test_a_session_whose_other_begin_was_lost_has_no_windows():
    """One begin tells one end; whose frames belong to the other end is only supposed."""
    observer = ConnectionObserver(from_start=False)
    wire = Wire(observer)
    wire.say(CLIENT, Begin(next_outgoing_id=7, incoming_window=100, outgoing_window=50), channel=5)
    wire.say(CLIENT, Attach(name="p", handle=0, role=Role.SENDER, initial_delivery_count=0), 5)
    scope = wire.say(CLIENT, Transfer(handle=0, delivery_id=0), channel=5)
    assert scope.session_ledger == {"next_outgoing_id": 8, "outgoing_window": 50}
    assert "incoming_window" in scope.unknown


def test_links_attached_after_the_gap_are_known_from_their_attach_on():
    """What begins in the capture needs no guess."""
    wire = Wire(ConnectionObserver(from_start=False))
    wire.transfer(handle=5)
    wire.ready()
    scope = wire.flow(CLIENT, 0, 4)
    assert (scope.unknown, link(scope)) == ((), (0, 4))


def test_frames_on_unknown_handles_of_a_whole_connection_concern_no_link():
    """The peer broke the protocol; no link is made up for it."""
    wire = Wire().ready()
    scope = wire.transfer(handle=9)
    assert (scope.link, scope.link_ledger, scope.link_sender) == (None, None, "broker")
    assert wire.say(BROKER, Transfer(handle=0, delivery_id=1), channel=8).session is None


# -- as the shadow of an end


def test_the_shadow_of_an_end_shows_that_ends_session():
    """Placed at the client, every session ledger is the client's own."""
    wire = Wire(ConnectionObserver(end="client")).ready()
    scope = wire.flow(CLIENT, 0, 5)
    assert (scope.link_sender, scope.link_sender_is_local) == ("broker", False)
    assert scope.session_ledger["next_outgoing_id"] == 7
    assert scope.session_ledger["remote_incoming_window"] == 200
    assert wire.transfer().session_ledger["next_incoming_id"] == 1


@settings(derandomize=True, max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("grant"), st.integers(0, 20), st.integers(0, 3)),
            st.tuples(st.just("send"), st.integers(1, 3), st.just(0)),
            st.tuples(st.just("drain"), st.just(0), st.just(0)),
        ),
        max_size=30,
    ),
    st.integers(0, WRAP - 1),
)
def test_the_limit_is_constant_between_grants_and_independent_of_the_start(steps, first):
    """delivery-count + link-credit moves only with the receiver's flows, from any start [2.6.7]."""
    wire = Wire(first=first).ready()
    sent = limit = 0
    for step, number, late in steps:
        if step == "grant":
            seen = max(0, sent - late)
            limit = seen + number
            scope = wire.flow(CLIENT, (first + seen) % WRAP, number)
        elif step == "send":
            sent += 1
            for part in range(number):
                scope = wire.transfer(first=part == 0, more=part < number - 1)
        else:
            sent = max(sent, limit)
            scope = wire.flow(BROKER, (first + sent) % WRAP, 0)
        assert link(scope) == ((first + sent) % WRAP, max(0, limit - sent))
