"""Publishers under the presets of RabbitMQ: 170, again at 85, and only while confirms come.

The numbers in the expectations were measured on RabbitMQ 4.0.5 and 4.3.6; here they come out of
grant rule, mailbox and confirms. How a conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import pytest

from tests.broker.rig import SPEC, Rig, data, rabbit
from tests.broker.talk import Talk
from workbench.amqp10.frame import Frame
from workbench.amqp10.performatives import Flow

GRANTS = {
    "a15: 170 at first, and again when 85 are left": """
        attach; send 84 -> limits 0@170
        send 1 -> limits 0@170 85@170
        send 171 -> limits 0@170 85@170 170@170 255@170""",
    # At 85 left, 85 wait: granted. At 85 left again, 170 wait: not granted.
    "a16: a stalled queue takes 255 if nothing was ever confirmed": """
        stall; attach; flood -> flooded 255 | credit 0 | limits 0@170 85@170 | unconfirmed 255""",
    # One confirmed message shifts the count: at 85 left for the second time, only 169 wait.
    "a16: a stalled queue takes 340 if one was confirmed": """
        attach; send 1; stall; flood -> flooded 339 | credit 0 | limits 0@170 85@170 170@170""",
    "a18: max_link_credit can be set": """
        with publisher_credit=10
        attach; send 4 -> limits 0@10
        send 1 -> limits 0@10 5@10
        send 5 -> limits 0@10 5@10 10@10""",
    "a18: and a stalled queue then takes 15": """
        with publisher_credit=10
        stall; attach; flood -> flooded 15 | credit 0 | limits 0@10 5@10""",
    "a19: a stalled queue holds its own publisher alone": """
        stall slow; attach slow to=slow; flood -> flooded 255
        attach fast to=fast; flood 2000 -> flooded 2000 | slow.credit 0""",
    "a28: consumers on the same session go on while a queue stalls": """
        stall; ready 500 out; attach; flood
        receive of=out; grant 500 -> sent 500""",
    "a58: a publisher's available and echo are ignored": """
        attach; mark; echo 0; echo 1; echo 5000 -> new - | credit 170""",
}


@rabbit
@pytest.mark.parametrize("how", ["settled", "unsettled"])
@pytest.mark.parametrize("script", GRANTS.values(), ids=GRANTS)
def test_what_is_granted_to_a_publisher_and_when(preset, how, script) -> None:
    """Always the same credit, settled or not; never for want of a session window."""
    talk = Talk(preset)
    talk.settled = how == "settled"
    talk.play(script)
    assert talk.session.counters.remote_incoming_window > 0


@rabbit
def test_a_publisher_s_flow_says_nothing_of_its_link(preset) -> None:
    """Only its session fields are looked at (`rabbit_amqp_session.erl:handle_frame`)."""
    rig = Rig(preset)
    rig.fill("q", 0)
    client, session = rig.raw()
    link = rig.sender(session)
    granted, now = client.frames(Flow), session.counters
    ids = (now.next_incoming_id, 100, now.next_outgoing_id, 100)
    client.wire.send(client, Frame(0, Flow(*ids, link.handle, 100, echo=True)))
    rig.rest()
    link.send(data(b"m"), settled=True)
    rig.rest()
    assert client.frames(Flow) == granted  # a broker that heard 100 would grant again from there


@rabbit
def test_a17_settled_messages_count_as_unconfirmed_too(preset) -> None:
    """Confirms inside the broker are always on; no disposition tells of these."""
    Talk(preset).play("""
        presettled; stall; attach; send 10 -> unconfirmed 10
        resume -> unconfirmed 0 | told -""")


def test_the_specifications_preset_grants_whatever_waits() -> None:
    """No gate there: only the session window stops a publisher to a stalled queue."""
    Talk(SPEC).play("stall; attach; flood -> flooded 1000")


def flood(rig, link) -> None:
    """Send as long as credit and window allow it."""
    while link.can_send:
        link.send(data(b"m"))
        rig.rest()


@rabbit
def test_a16_the_grant_comes_with_the_confirm_that_makes_it_legal(preset) -> None:
    """The queue goes on: the first confirm leaves 254 waiting, the grant comes below 170."""
    rig = Rig(preset)
    queue = rig.broker.declare("q")
    queue.stall()
    client, session = rig.raw()
    link = rig.sender(session)
    flood(rig, link)
    queue.resume()
    while link.credit == 0:
        assert rig.clock.step()
    assert rig.queue().ready >= 255 - 169
    rig.rest()
    assert client.frames(Flow)[-1].delivery_count == 255
    assert link.unsettled == {}


@rabbit
def test_a16_the_brake_of_a_publisher_to_a_stalled_queue_is_unconfirmed(preset) -> None:
    """Named once the credit is used up, and gone with the grant."""
    rig = Rig(preset)
    queue = rig.broker.declare("q")
    queue.stall()
    _, session = rig.raw()
    link, other = rig.sender(session), rig.sender(session, "q2", "s2")
    flood(rig, link)
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
