"""The observer: right counters from wire fields alone, and none where they cannot be known."""

from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp10.pair import LinkPair, Side
from workbench.amqp10.errors import LocalProtocolError
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
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

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


@pytest.mark.parametrize("first", [0, 10, WRAP // 2 - 1, WRAP - 2])
def test_credit_counts_from_any_initial_delivery_count(first):
    """delivery-count(rcv) + link-credit(rcv) - delivery-count(snd), over the wrap [2.6.7]."""
    wire = Wire(first=first).ready()
    assert link(wire.flow(CLIENT, first, 3)) == (first, 3)
    counted = [link(wire.transfer()) for _ in range(3)]
    assert counted == [((first + n) % WRAP, 3 - n) for n in (1, 2, 3)]


def test_the_race_of_a_grant_and_a_transfer():
    """A flow of 6 made before the message arrived leaves 20 + 6 - 21 = 5."""
    wire = Wire(first=20).ready()
    wire.flow(CLIENT, 20, 3)
    wire.transfer()
    assert link(wire.flow(CLIENT, 20, 6)) == (21, 5)


def test_credit_is_absolute_and_repeating_a_flow_changes_nothing():
    """Two flows of 50 are 50."""
    wire = Wire().ready()
    assert link(wire.flow(CLIENT, 0, 50)) == link(wire.flow(CLIENT, 0, 50)) == (0, 50)


def test_credit_lowered_below_what_is_in_flight_is_floored():
    """A receiver may lower credit; the entitlement is then 0 and never negative."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 10)
    for _ in range(4):
        wire.transfer()
    assert link(wire.flow(CLIENT, 1, 2)) == (4, 0)
    assert link(wire.flow(CLIENT, 4, 2)) == (4, 2)


@pytest.mark.parametrize("credit", [2**31, WRAP - 1])
def test_huge_credit_is_counted(credit):
    """link-credit is any uint; only counts are serial numbers."""
    wire = Wire().ready()
    assert link(wire.flow(CLIENT, 0, credit)) == (0, credit)
    assert link(wire.transfer()) == (1, credit - 1)


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


def test_window_counts_frames_and_credit_counts_messages():
    """Each transfer frame takes one of the window, whatever message it belongs to [2.5.6]."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 3)
    windows = [
        wire.transfer(more=True).session_ledger["remote_incoming_window"],
        wire.transfer(first=False).session_ledger["remote_incoming_window"],
    ]
    assert windows == [99, 98]


def test_drain_gives_the_rest_of_the_credit_back():
    """The sender's flow advances its count to the limit; drain stays as last heard."""
    wire = Wire(first=WRAP - 2).ready()
    wire.flow(CLIENT, WRAP - 2, 5, drain=True)
    wire.transfer()
    scope = wire.flow(BROKER, 3, 0, drain=True, available=0)
    assert link(scope) == (3, 0)
    assert scope.link_ledger["drain"] is True
    assert link(wire.flow(CLIENT, 3, 1)) == (3, 1)


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


def test_a_transfer_that_may_be_a_later_part_makes_the_count_unknown_again():
    """With its id it may begin a message or go on with one whose first part was lost."""
    wire = Wire().ready()
    wire.flow(CLIENT, 0, 10)
    wire.observer.lost(BROKER)
    wire.flow(BROKER, 4, 6)
    assert "delivery_count" in wire.transfer().unknown
    wire.flow(BROKER, 5, 5)
    assert link(wire.transfer()) == (6, 4)


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


class ShadowedSide(Side):
    """An end of our own with an observer beside it that sees what it sends and hears."""

    def __init__(self, name, is_client, *rest):
        self.shadow = ConnectionObserver(end="client" if is_client else "broker")
        self.is_client = is_client
        self.compared = 0
        super().__init__(name, is_client, *rest)

    def _emit(self, item):
        super()._emit(item)
        self.compare(item, outgoing=True)

    def compare(self, item, *, outgoing):
        mine = self.connection.scope(item, outgoing)
        seen = self.shadow.see(item, self.is_client == outgoing)
        assert seen.unknown == ()
        names = ("session", "link", "link_sender_is_local", "attach_no")
        if mine.link is not None or seen.link is None:
            assert [getattr(seen, n) for n in names] == [getattr(mine, n) for n in names]
        for own, shadow in (
            (mine.link_ledger, seen.link_ledger),
            (mine.session_ledger, seen.session_ledger),
        ):
            for name, value in (own or {}).items():
                # What an end has available, and whether it lowers its own outgoing-window, are its
                # own business: the wire tells neither.
                if shadow is not None and name not in ("available", "outgoing_window"):
                    assert shadow.get(name, value) == value, (name, type(item.performative))
                    self.compared += name in shadow


class ShadowedPair(LinkPair):
    def deliver(self, side, count=1):
        peer = self.peer_of(side)
        for _ in range(count):
            item = side.flying.popleft()
            events = peer.connection.apply(item)
            peer.compare(item, outgoing=False)
            peer.events.extend(events)
            if self.answers:
                for event in events:
                    peer.connection.answer(event)


ACTS = st.one_of(
    st.tuples(st.just("grant"), st.integers(0, 12)),
    st.tuples(st.just("drain"), st.integers(0, 12)),
    st.tuples(st.just("send"), st.integers(0, 1500)),
    st.tuples(st.just("settled"), st.integers(0, 600)),
    st.tuples(st.just("settle"), st.integers(0, 9)),
    st.tuples(st.just("drained"), st.just(0)),
    st.tuples(st.just("window"), st.integers(0, 6)),
    st.tuples(st.just("to_client"), st.integers(1, 3)),
    st.tuples(st.just("to_server"), st.integers(1, 3)),
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    st.lists(ACTS, max_size=40),
    st.booleans(),
    st.sampled_from([0, 10, 2**31 - 8, WRAP - 6]),
    st.integers(1, 12),
)
def test_the_shadow_of_our_own_end_shows_that_ends_counters(acts, server_sends, start, window):
    """Fed an end's frames in its order, the observer has the counters that the end keeps itself."""
    session = SessionSettings(incoming_window=window, next_outgoing_id=start)
    with patch("tests.amqp10.pair.Side", ShadowedSide):
        pair = ShadowedPair(
            server_sends=server_sends,
            client=ConnectionSettings(max_frame_size=512),
            server=ConnectionSettings(max_frame_size=512),
            client_session=session,
            server_session=session,
            sender_terms={"initial_delivery_count": start},
        )
    for act, number in acts:
        try:
            if act == "grant":
                pair.receiver.grant(number)
            elif act == "drain":
                pair.receiver.grant(number, drain=True)
            elif act == "send":
                pair.sender.send(bytes(number))
            elif act == "settled":
                pair.sender.send(bytes(number), settled=True)
            elif act == "settle" and pair.receiver.unsettled:
                unsettled = list(pair.receiver.unsettled)
                pair.receiver.settle(unsettled[number % len(unsettled)], unsettled[-1])
            elif act == "drained":
                pair.sender.drained()
            elif act == "window":
                pair.receiver_session.set_incoming_window(number)
                pair.receiver_session.flow()
            elif act.startswith("to_"):
                side = pair.server if act == "to_client" else pair.client
                pair.deliver(side, min(number, len(side.flying)))
        except LocalProtocolError:
            pass
    pair.pump()
    assert pair.client.compared > 20


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
