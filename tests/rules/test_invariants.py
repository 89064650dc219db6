"""Invariants of link and session flow control, under any acts and any order of arrival.

The acts are made with two real endpoints, from four starts at once; after each the endpoints are
compared with books kept in plain numbers (see `books`). The numbers of the invariants:

1. delivery-count + link-credit of the sender is the last limit that it heard.
2. The counts of the two ends differ by what is on the wire, and agree when it is empty.
3. The last flow once more changes nothing.
4. The result does not depend on initial-delivery-count, next-outgoing-id or delivery-id.
5. No more transfer frames are sent than the last flow's window allows.
6. Flows and dispositions are never blocked by window or credit.
14. A drain's answer leaves credit 0 and the limit as it was.
"""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.rules.books import CLIENT, LINKS, SERVER
from tests.rules.playing import Play
from tests.rules.runs import STARTS
from workbench import serial
from workbench.amqp10 import flow, session

ALL = frozenset({0, 1, 2, 3, 4, 5, 6, 14})

links = st.integers(0, len(LINKS) - 1)
ends = st.sampled_from([CLIENT, SERVER])
credit = st.sampled_from([0, 1, 2, 3, 5, 8, 12])
windows = st.sampled_from([0, 1, 2, 4, 8, 20])
open_windows = st.sampled_from([2, 4, 8, 20])
# One to four frames, and none so near to a whole number of frames that it matters how many octets
# a delivery-id takes.
small = st.sampled_from([0, 100, 400])
large = st.sampled_from([700, 1200, 1600])
which = st.integers(0, 9)


def chosen(from_, which):
    """One of a list that is not empty."""
    return from_[which % len(from_)]


class Acts(RuleBasedStateMachine):
    """Acts and arrivals in any order, in four worlds at once."""

    watched = ALL

    @initialize(
        window=open_windows, peer_window=open_windows, credits=st.tuples(credit, credit, credit)
    )
    def begin(self, window, peer_window, credits):
        self.worlds = [Play(start, (window, peer_window)) for start in STARTS]
        for link, granted in enumerate(credits):
            self.each("grant", link, granted)

    def each(self, act, *arguments):
        for world in self.worlds:
            getattr(world, act)(*arguments)

    # -- the receiver ---------------------------------------------------------------------------

    @rule(link=links, credit=credit, echo=st.booleans())
    def grant(self, link, credit, echo):
        self.each("grant", link, credit, False, echo)

    @rule(link=links, quarters=st.integers(0, 3))
    def lower_credit_or_stop(self, link, quarters):
        self.each(
            "grant", link, self.worlds[0].rcv[link].credit * quarters // 4, False, not quarters
        )

    @rule(link=links, credit=st.none() | credit, echo=st.booleans())
    def ask_to_drain(self, link, credit, echo):
        present = self.worlds[0].rcv[link].credit
        self.each("grant", link, present if credit is None else credit, True, echo)

    @precondition(lambda self: self.worlds[0].settleable)
    @rule(which=which, first=which, settled=st.booleans())
    def settle(self, which, first, settled):
        self.each("settle", chosen(self.worlds[0].settleable, which), first, settled)

    @rule(end=ends, window=windows)
    def set_window(self, end, window):
        self.each("window", end, window)

    # -- the sender -----------------------------------------------------------------------------

    @precondition(lambda self: self.worlds[0].sendable)
    @rule(which=which, size=small, settled=st.booleans())
    def send(self, which, size, settled):
        self.each("send", chosen(self.worlds[0].sendable, which), size, settled)

    @precondition(lambda self: self.worlds[0].sendable)
    @rule(which=which, size=large, settled=st.booleans())
    def send_in_frames(self, which, size, settled):
        self.each("send", chosen(self.worlds[0].sendable, which), size, settled)

    @precondition(lambda self: self.worlds[0].sendable)
    @rule(which=which, count=st.integers(2, 6))
    def send_more_than_may_be(self, which, count):
        link = chosen(self.worlds[0].sendable, which)
        for _ in range(count):
            self.each("send", link, 0, True)

    @rule(link=links, count=st.integers(0, 3))
    def available(self, link, count):
        self.each("available", link, count)

    @rule(link=links)
    def give_back(self, link):
        self.each("give_back", link)

    @precondition(lambda self: self.worlds[0].under_way)
    @rule(which=which)
    def abort(self, which):
        self.each("abort", chosen(self.worlds[0].under_way, which))

    # -- either, and the wire -------------------------------------------------------------------

    @rule(link=st.none() | links, end=ends, echo=st.booleans())
    def tell(self, link, end, echo):
        if link is None:
            self.each("say_session", end, echo)
        else:
            self.each("say", link, end == LINKS[link], echo)

    @rule(end=ends, count=st.integers(1, 4))
    def arrive(self, end, count):
        self.each("arrive", end, count)

    @rule(end=ends)
    def all_of_one_direction_arrives(self, end):
        self.each("arrive", end, 10_000)

    @rule()
    def the_wire_runs_empty(self):
        self.each("empty")

    @invariant()
    def holds(self):
        for world in self.worlds:
            world.check()
        pictures = [world.picture() for world in self.worlds]
        faults = {}
        for world in self.worlds:
            for number, texts in world.faults.items():
                faults.setdefault(number, []).extend(texts)
        if any(one != pictures[0] for one in pictures):
            faults.setdefault(4, []).append(f"it depends on the start: {pictures}")
        for number in sorted(faults):
            assert number not in self.watched, f"invariant {number}: {faults[number][0]}"

    def teardown(self):
        if hasattr(self, "worlds"):
            self.the_wire_runs_empty()
            self.holds()


BOUNDS = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=250,
    stateful_step_count=50,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_invariants_hold_in_every_order_of_acts_and_arrivals_from_every_start():
    """Invariants 1 to 6 and 14 [2.5.6, 2.6.7], starts 0, 10, 2147483640 and 4294967290."""
    run_state_machine_as_test(Acts, settings=BOUNDS)


# -- each invariant can fail -----------------------------------------------------------------------


def sets(delivery_count_rcv, link_credit_rcv, delivery_count_snd):
    """The wrong rule that takes a flow's credit as it stands."""
    return link_credit_rcv


def never_wraps(delivery_count_rcv, link_credit_rcv, delivery_count_snd):
    """The right formula with plain subtraction."""
    return max(0, delivery_count_rcv + link_credit_rcv - delivery_count_snd)


def adds(self, delivery_count, link_credit):
    """The wrong rule that adds a flow's credit to what is left."""
    return self.link_credit + link_credit


def keeps_one(self):
    """A drain's answer that keeps one credit."""
    given_back = max(0, self.link_credit - 1)
    self.delivery_count = serial.add(self.delivery_count, given_back)
    self.link_credit -= given_back
    return given_back


def moves_back(self):
    """A drain's answer that drops the credit and leaves the count: the limit sinks."""
    self.link_credit = 0
    return 0


def counts_nothing(self, count=1):
    """A receiver that does not count what arrives."""


def counts_credit_alone(self, count=1):
    """A sender that lowers its credit and leaves its count."""
    self.link_credit -= count
    self.available = max(0, self.available - count)


def takes_the_window(next_incoming_id, incoming_window, next_outgoing_id):
    """The window of a flow as it stands, without what is under way."""
    return incoming_window


def ignores_the_window(self, count=1):
    """A session that does not count the frames it sends against the peer's window."""
    self.next_outgoing_id = serial.add(self.next_outgoing_id, count)


emit_flow = session.Session.emit_flow
emit_disposition = session.Session.emit_disposition


def flow_waits_for_the_window(self, link, **fields):
    """A session that holds flows back while the peer's window is closed."""
    if self.counters.remote_incoming_window:
        emit_flow(self, link, **fields)


def flow_waits_for_credit(self, link, **fields):
    """A session that says nothing of a link without credit."""
    if link is None or link.credit:
        emit_flow(self, link, **fields)


def disposition_waits_for_the_window(self, link, role, first, last, **fields):
    """A session that holds outcomes back while the peer's window is closed."""
    if self.counters.remote_incoming_window:
        emit_disposition(self, link, role, first, last, **fields)


FAULTS = [
    (1, flow, "link_credit_snd", sets),
    (1, flow.SenderLinkFlow, "credit_after", adds),
    (1, flow, "link_credit_snd", never_wraps),
    (1, flow.SenderLinkFlow, "begin_delivery", counts_credit_alone),
    (2, flow, "link_credit_snd", sets),
    (2, flow.ReceiverLinkFlow, "take_delivery", counts_nothing),
    (2, flow.SenderLinkFlow, "begin_delivery", counts_credit_alone),
    (3, flow.SenderLinkFlow, "credit_after", adds),
    (3, flow, "link_credit_snd", sets),
    (3, flow, "remote_incoming_window", takes_the_window),
    (4, flow, "link_credit_snd", never_wraps),
    (5, flow, "remote_incoming_window", takes_the_window),
    (5, flow.SessionFlow, "send_transfer", ignores_the_window),
    (6, session.Session, "emit_flow", flow_waits_for_the_window),
    (6, session.Session, "emit_flow", flow_waits_for_credit),
    (6, session.Session, "emit_disposition", disposition_waits_for_the_window),
    (14, flow.SenderLinkFlow, "advance", keeps_one),
    (14, flow.SenderLinkFlow, "advance", moves_back),
]


@pytest.mark.parametrize(("number", "place", "name", "wrong"), FAULTS)
def test_each_invariant_alone_catches_an_endpoint_that_breaks_it(
    monkeypatch, number, place, name, wrong
):
    """Nobody else looks: the invariant of that number finds the fault by itself."""
    monkeypatch.setattr(place, name, wrong)

    class Alone(Acts):
        watched = frozenset({number})

    with pytest.raises(AssertionError, match=f"invariant {number}: "):
        run_state_machine_as_test(Alone, settings=BOUNDS)
