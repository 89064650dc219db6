"""Publishers under the presets of RabbitMQ: 170, again at 85, and only while confirms come.

The numbers in the expectations were measured on RabbitMQ 4.0.5 and 4.3.6; here they come out of
grant rule, mailbox and confirms.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import Rig, data
from workbench import presets
from workbench.amqp10.performatives import Disposition, Flow

RMQ43 = presets.get("rmq4.3")
BOTH = pytest.mark.parametrize("preset", [presets.get("rmq4.0"), RMQ43], ids=lambda p: p.name)
SETTLED = pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])


def link_flows(client) -> list[tuple[int, int]]:
    """(delivery-count, link-credit) of the flows about a link."""
    flows = client.frames(Flow)
    return [(flow.delivery_count, flow.link_credit) for flow in flows if flow.handle is not None]


def send_while_legal(rig, link, settled: bool, most: int = 1000) -> int:
    """Send whenever credit and window allow it; returns how many went out."""
    sent = 0
    while sent < most and link.can_send:
        link.send(data(b"m"), settled=settled)
        sent += 1
        rig.rest()
    return sent


GRANTS = {
    "a15: 170 at first, and again when 85 are left": (
        {},
        [("send 84", 84, [0]), ("send 1", 1, [0, 85]), ("send 171", 171, [0, 85, 170, 255])],
    ),
    # At 85 left, 85 wait: granted. At 85 left again, 170 wait: not granted.
    "a16: a stalled queue takes 255 if nothing was ever confirmed": (
        {},
        [("stall", 0, [0]), ("send all", 255, [0, 85])],
    ),
    # One confirmed message shifts the count: at 85 left for the second time, only 169 wait.
    "a16: a stalled queue takes 340 if one was confirmed": (
        {},
        [("send 1", 1, [0]), ("stall", 0, [0]), ("send all", 339, [0, 85, 170])],
    ),
    "a18: max_link_credit can be set": (
        {"publisher_credit": 10},
        [("send 4", 4, [0]), ("send 1", 1, [0, 5]), ("send 5", 5, [0, 5, 10])],
    ),
    "a18: and a stalled queue then takes 15": (
        {"publisher_credit": 10},
        [("stall", 0, [0]), ("send all", 15, [0, 5])],
    ),
}
"""Changed numbers; acts, each with how many messages go out and the counts of all grants so far."""


@BOTH
@SETTLED
@pytest.mark.parametrize(("numbers", "acts"), GRANTS.values(), ids=GRANTS)
def test_what_is_granted_to_a_publisher_and_when(preset, settled, numbers, acts) -> None:
    """Always the same credit; never for want of a session window, which stays open."""
    numbers = {"publisher_credit": 170, **numbers}
    rig = Rig(replace(preset, **numbers))
    queue = rig.broker.declare("q")
    client, session = rig.raw()
    link = rig.sender(session)
    for act, sent, counts in acts:
        if act == "stall":
            queue.stall()
        else:
            most = act.removeprefix("send ")
            assert (
                send_while_legal(rig, link, settled, 1000 if most == "all" else int(most)) == sent
            )
            assert (link.credit == 0) is (most == "all")
        assert link_flows(client) == [(count, numbers["publisher_credit"]) for count in counts]
        assert session.counters.remote_incoming_window > 0


@BOTH
def test_a16_the_grant_comes_with_the_confirm_that_makes_it_legal(preset) -> None:
    """The queue goes on: the first confirm leaves 254 waiting, the grant comes below 170."""
    rig = Rig(preset)
    queue = rig.broker.declare("q")
    queue.stall()
    client, session = rig.raw()
    link = rig.sender(session)
    send_while_legal(rig, link, settled=False)
    queue.resume()
    while link.credit == 0:
        assert rig.clock.step()
    assert rig.queue().ready >= 255 - 169
    rig.rest()
    assert link_flows(client)[-1] == (255, 170)
    assert link.unsettled == {}


@BOTH
def test_a16_the_brake_of_a_publisher_to_a_stalled_queue_is_unconfirmed(preset) -> None:
    """Named once the credit is used up, and gone with the grant."""
    rig = Rig(preset)
    queue = rig.broker.declare("q")
    queue.stall()
    _, session = rig.raw()
    link, other = rig.sender(session), rig.sender(session, "q2", "s2")
    send_while_legal(rig, link, settled=True)
    other.send(data(b"m"))
    link.available = other.available = 9
    for sender in (link, other):
        sender.flow()
    first, second = rig.recorder.rows[-2:]
    assert (first.brake, first.brakes) == ("unconfirmed", ("unconfirmed", "link-credit"))
    assert (second.brake, second.brakes) == ("none", ())
    queue.resume()
    rig.rest()
    told = [
        (r.event, r.ledger["unconfirmed"]) for r in rig.recorder.rows if r.kind == "unconfirmed"
    ]
    assert told == [("block", 170), ("unblock", 169)]
    link.flow()
    assert rig.recorder.rows[-1].brake == "none"


@BOTH
def test_a28_consumers_on_the_same_session_go_on_while_a_queue_stalls(preset) -> None:
    """One connection both ways: the stalled publisher holds nobody else."""
    rig = Rig(preset)
    rig.broker.declare("q").stall()
    rig.fill("out", 500)
    _, session = rig.raw()
    send_while_legal(rig, rig.sender(session), settled=False)
    receiver = rig.receiver(session, "out")
    receiver.grant(500)
    rig.rest()
    assert len(receiver.unsettled) == 500


@BOTH
def test_a17_settled_messages_count_as_unconfirmed_too(preset) -> None:
    """Confirms inside the broker are always on; no disposition tells of these."""
    rig = Rig(preset)
    queue = rig.broker.declare("q")
    queue.stall()
    client, session = rig.raw()
    link = rig.sender(session)
    send_while_legal(rig, link, settled=True, most=10)
    assert rig.broker.overview()["c1.s.unconfirmed"] == 10
    queue.resume()
    rig.rest()
    assert rig.broker.overview()["c1.s.unconfirmed"] == 0
    assert client.frames(Disposition) == []


@BOTH
def test_a58_a_publishers_available_and_echo_are_ignored(preset) -> None:
    """It says how much it has, and asks: no answer, no grant, whatever the number."""
    rig = Rig(preset)
    client, session = rig.raw()
    link = rig.sender(session)
    before = len(client.received)
    for available in (0, 1, 5000):
        link.available = available
        link.flow(echo=True)
    rig.rest()
    assert client.received[before:] == []
    assert link.credit == 170


@BOTH
def test_a19_a_stalled_queue_holds_its_own_publisher_alone(preset) -> None:
    """Another link on the same session goes on as if nothing were."""
    rig = Rig(preset)
    rig.broker.declare("slow").stall()
    _, session = rig.raw()
    slow, fast = rig.sender(session, "slow", "slow"), rig.sender(session, "fast", "fast")
    assert send_while_legal(rig, slow, settled=False) == 255
    assert send_while_legal(rig, fast, settled=False, most=2000) == 2000
    assert slow.credit == 0


def test_the_specifications_preset_grants_whatever_waits() -> None:
    """No gate there: only the session window stops a publisher to a stalled queue."""
    rig = Rig(presets.get("spec"))
    rig.broker.declare("q").stall()
    _, session = rig.raw()
    assert send_while_legal(rig, rig.sender(session), settled=False) == 1000


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["send", "burst", "stall", "resume", "wait"]), max_size=60),
    st.booleans(),
)
def test_invariant_7_credit_and_unconfirmed_stay_below_their_bounds(acts, settled) -> None:
    """Credit never above 170, unconfirmed never above 339 or, with nothing confirmed, 255."""
    rig = Rig(RMQ43)
    queue = rig.broker.declare("q")
    client, session = rig.raw()
    link = rig.sender(session)
    (host,) = rig.broker.connections["c1"].hosts.values()
    for act in acts:
        grants = len(link_flows(client))
        match act:
            case "send" | "burst":
                for _ in range(1 if act == "send" else 90):
                    if link.can_send:
                        link.send(data(b"m"), settled=settled)
            case "stall":
                queue.stall()
            case "resume":
                queue.resume()
            case "wait":
                rig.rest()
        for _ in range(40):
            rig.clock.step()
        assert link.credit <= 170
        assert host.unconfirmed <= (339 if rig.queue().enqueued else 255)
        for count, credit in link_flows(client)[grants:]:
            assert credit == 170
            assert count is not None
    queue.resume()
    rig.rest()
    assert host.unconfirmed == 0
    assert host.link.credit > 85
