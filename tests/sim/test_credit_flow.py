"""Credit between processes, counter by counter, and a chain of them in any order of events."""

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workbench.sim.credit_flow import CreditFlow, Grant


def test_with_the_last_credit_a_process_is_blocked_and_a_grant_lets_it_go_on():
    """200, 0, 50: figures 3 and 4 of article B, with its numbers."""
    sender, receiver = (CreditFlow(initial=200, more_after=50) for _ in range(2))
    for _ in range(199):
        sender.send("r", 200)
    assert not sender.blocked
    sender.send("r", 200)
    assert (sender.blocked, sender.credit_from) == (True, {"r": 0})
    grants = [grant for _ in range(50) for grant in receiver.handled("s")]
    assert grants == [Grant("s", 50)]
    assert sender.granted("r", 50) == []
    assert (sender.blocked, sender.credit_from) == (False, {"r": 50})


def test_who_is_blocked_keeps_its_grants_until_nobody_is_in_the_way():
    """Two queues in the way: the grants come with the second one."""
    flow = CreditFlow(initial=4, more_after=2)
    flow.block("q1")
    flow.block("q2")
    assert [flow.handled("s") for _ in range(4)] == [[], [], [], []]
    assert flow.unblock("q1") == []
    assert flow.unblock("q2") == [Grant("s", 2), Grant("s", 2)]
    assert flow.unblock("q2") == []


def test_sending_is_not_prevented_below_nothing():
    """A process inside the chain goes on; one grant may not be enough then."""
    flow = CreditFlow(initial=2, more_after=2)
    for _ in range(5):
        flow.send("r", 2)
    assert (flow.credit_from["r"], flow.granted("r", 2), flow.blocked) == (-3, [], True)
    flow.granted("r", 2)
    assert not flow.blocked


def test_a_lost_process_holds_nobody_up():
    """Its counters go, and what was kept back for its sake is granted."""
    flow = CreditFlow(initial=1, more_after=1)
    flow.send("r", 1)
    assert flow.handled("s") == []
    assert flow.lost("r") == [Grant("s", 1)]
    assert (flow.blocked, flow.credit_from) == (False, {})


@pytest.mark.parametrize(("initial", "more_after"), [(0, 0), (5, 0), (5, 6), (-1, -1)])
def test_credit_that_would_never_come_is_refused(initial, more_after):
    """The text says what is legal."""
    with pytest.raises(ValueError, match="legal: grants of 1 to"):
        CreditFlow(initial=initial, more_after=more_after)


class AnyChain(RuleBasedStateMachine):
    """a sends to b, b to c; c may hang. Messages and grants travel in boxes of their own."""

    INITIAL, MORE = 7, 3

    def __init__(self):
        super().__init__()
        self.flows = {
            name: CreditFlow(initial=self.INITIAL, more_after=self.MORE) for name in "abc"
        }
        self.boxes = {"b": 0, "c": 0}
        self.bumps = deque()
        self.handled = {"b": 0, "c": 0}  # since the last grant that was decided

    def post(self, grants, by):
        self.bumps.extend((by, grant) for grant in grants)

    def work(self, who, sender):
        self.boxes[who] -= 1
        flow = self.flows[who]
        kept = len(flow.kept)
        grants = flow.handled(sender)
        self.handled[who] = 0 if grants or len(flow.kept) > kept else self.handled[who] + 1
        if flow.blocked:
            assert not grants  # invariant: who is blocked posts no grant
        self.post(grants, who)

    @precondition(lambda self: not self.flows["a"].blocked)  # it owns the socket
    @rule()
    def a_reads_and_sends(self):
        self.flows["a"].send("b", self.INITIAL)
        self.boxes["b"] += 1

    @precondition(lambda self: self.boxes["b"])
    @rule()
    def b_works(self):
        self.work("b", "a")
        self.flows["b"].send("c", self.INITIAL)
        self.boxes["c"] += 1

    @precondition(lambda self: self.boxes["c"])
    @rule()
    def c_works(self):
        self.work("c", "b")

    @rule(slow=st.booleans())
    def a_queue_is_slow_or_not(self, slow):
        flow = self.flows["c"]
        if slow:
            flow.block("queue")
        else:
            self.post(flow.unblock("queue"), "c")

    @precondition(lambda self: self.bumps)
    @rule()
    def a_grant_arrives(self):
        by, grant = self.bumps.popleft()
        self.post(self.flows[grant.to].granted(by, grant.credit), grant.to)

    @invariant()
    def credit_is_somewhere(self):
        for sender, receiver in (("a", "b"), ("b", "c")):
            credit = self.flows[sender].credit_from.get(receiver, self.INITIAL)
            kept = sum(grant.credit for grant in self.flows[receiver].kept)
            travelling = sum(g.credit for by, g in self.bumps if by == receiver)
            there = self.boxes[receiver] + self.handled[receiver]
            assert credit + there + kept + travelling == self.INITIAL

    @invariant()
    def the_socket_s_owner_never_owes(self):
        assert self.flows["a"].credit_from.get("b", self.INITIAL) >= 0


AnyChain.TestCase.settings = settings(
    derandomize=True, max_examples=60, stateful_step_count=50, deadline=None
)
TestAnyChain = AnyChain.TestCase
