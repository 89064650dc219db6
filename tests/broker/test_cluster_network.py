"""The ways between nodes: order, cuts that are noticed or not, the death of a node."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.broker.cluster_network import ClusterNetwork
from workbench.queues import QueueError
from workbench.sim import VirtualClock


class World:
    """Three nodes, and a book of what arrived and who was told what."""

    def __init__(self, latency_us=100, detect_us=1_000):
        self.clock = VirtualClock()
        self.book = []
        self.network = ClusterNetwork(
            self.clock, ("a", "b", "c"), latency_us=latency_us, detect_us=detect_us, told=self
        )

    def node_down(self, at, node):
        self.book.append((at, "lost", node))

    def node_up(self, at, node):
        self.book.append((at, "found", node))

    def send(self, frm, to, what):
        self.network.send(frm, to, self.book.append, what)


def test_a_shorter_latency_lets_nothing_overtake():
    """One connection keeps its order, whatever the latency becomes."""
    world = World()
    world.send("a", "b", 1)
    world.network.set_latency("a", "b", 0)
    world.send("a", "b", 2)
    world.clock.run_until_rest()
    assert world.book == [1, 2]


def test_a_cut_that_is_mended_in_time_loses_nothing():
    """What was under way arrives late, in order, and nobody is told anything."""
    world = World()
    world.send("a", "b", 1)
    world.network.cut("a", "b")
    world.send("a", "b", 2)
    world.clock.call_later(500, world.network.heal, "a", "b")
    world.clock.call_later(600, world.send, "a", "b", 3)
    world.clock.run_until_rest()
    assert world.book == [1, 2, 3]


def test_a_cut_that_is_noticed_loses_what_was_under_way_and_both_are_told():
    """After the connection is given up; a new one begins with word of it, then goes on."""
    world = World()
    world.send("a", "b", 1)
    world.network.cut("a", "b")
    world.clock.run_until_rest()
    assert world.book == [("a", "lost", "b"), ("b", "lost", "a")]
    world.send("a", "b", 2)  # no connection: lost at once
    world.network.heal("a", "b")
    world.send("a", "b", 3)
    world.clock.run_until_rest()
    assert world.book[2:] == [("a", "found", "b"), ("b", "found", "a"), 3]


def test_a_dead_node_is_noticed_at_once_and_only_by_those_who_live():
    """Its machine closes the connections; what was on them is lost."""
    world = World()
    world.send("a", "b", 1)
    world.network.node_lost("a")
    world.clock.run_until_rest()
    assert world.book == [("b", "lost", "a"), ("c", "lost", "a")]
    assert world.clock.now_us == 100


def test_a_node_that_dies_and_comes_back_behind_a_cut_is_a_new_one_to_the_others():
    """Though the cut is mended in time, what the dead one had sent is lost."""
    world = World()
    world.network.cut("a", "b")
    world.send("a", "b", 1)
    world.clock.run_until_rest(0)
    world.network.node_lost("a")
    world.network.node_back("a")
    world.network.heal("a", "b")
    world.clock.run_until_rest()
    assert 1 not in world.book
    told_b = [entry for entry in world.book if entry[0] == "b"]
    assert told_b == [("b", "lost", "a"), ("b", "found", "a")]


@pytest.mark.parametrize(
    ("act", "ends", "why"),
    [
        ("heal", ("a", "b"), "a-b is not cut; cut now: none"),
        ("cut", ("a", "z"), "no way a-z; nodes: a, b, c"),
        ("cut", ("a", "a"), "no way a-a"),
    ],
)
def test_what_cannot_be_is_refused(act, ends, why):
    """With the names that there are."""
    with pytest.raises(QueueError, match=why):
        getattr(World().network, act)(*ends)


def test_a_way_is_cut_once():
    """The second time is refused."""
    world = World()
    world.network.cut("a", "b")
    with pytest.raises(QueueError, match="cut already; legal now: heal"):
        world.network.cut("b", "a")


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["send", "cut", "heal", "die", "live", "wait", "latency"]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=40,
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(ACTS)
def test_within_one_connection_everything_arrives_in_order_and_ends_agree(acts):
    """Whatever happens: per direction numbers rise, and at rest both ends know the same."""
    world = World()
    names, sent, arrived = ("a", "b", "c"), 0, {}

    def arrive(way, number):
        assert number > arrived.get(way, 0)
        arrived[way] = number

    for act, one, two in acts:
        a, b = names[one], names[two]
        if act == "wait":
            for _ in range(one + two):
                world.clock.step()
        elif act == "die" and world.network.alive[a]:
            world.network.node_lost(a)
        elif act == "live" and not world.network.alive[a]:
            world.network.node_back(a)
        elif a != b and act == "cut" and not world.network.is_cut(a, b):
            world.network.cut(a, b)
        elif a != b and act == "heal" and world.network.is_cut(a, b):
            world.network.heal(a, b)
        elif a != b and act == "latency":
            world.network.set_latency(a, b, 1 + 300 * one)
        elif act == "send" and a != b and world.network.alive[a]:
            sent += 1
            world.network.send(a, b, arrive, (a, b), sent)
    world.clock.run_until_rest()
    for a in names:
        for b in names:
            if a == b or not world.network.alive[a]:
                continue
            words = [word for at, word, who in world.book if (at, who) == (a, b)]
            believes = not words or words[-1] == "found"
            if world.network.reaches(a, b):
                assert believes
                probe = []
                world.network.send(a, b, probe.append, True)
                world.clock.run_until_rest()
                assert probe
            elif world.network.alive[b] is False and not world.network.is_cut(a, b):
                assert not believes or not words
