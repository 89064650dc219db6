"""Session windows and resource alarms under the presets of RabbitMQ.

400, again at 200; an alarm makes the window 0, 400 more frames are tolerated, the 401st ends the
session. Measured on RabbitMQ 4.0.5 and 4.3.6. How a conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import RMQ43, RawClient, Rig, data, rabbit
from tests.broker.talk import Talk
from workbench.amqp10.performatives import Disposition, End, Flow

WINDOWS = {
    # No flow about a link opens it.
    "a68: the window is 400 and opened again when 200 are left": """
        attach -> begun 400 | flows 170@0/400
        send 199 -> flows 170@0/400 170@85/315 170@170/230
        send 1 -> windows 400
        send 55 -> flows 170@0/400 170@85/315 170@170/230 -/400 170@255/345""",
    # rabbit_amqp_session.erl: the window is counted first, its flow is sent last.
    "if both are due the link is told first and both flows have the window": """
        with publisher_credit=20 incoming_window=20
        attach; send 10 -> flows 20@0/20 20@10/20 -/20""",
    "a68: max_incoming_window can be set": """
        with incoming_window=10
        attach -> begun 10
        send 4 -> windows -
        send 1 -> windows 10""",
    "a65: the window counts frames and credit counts messages": """
        with max_frame_size=512
        attach; send large size=4800 -> broker_window 390 | credit 169""",
    "a66: a large message is held by the window in spite of credit": """
        ready 1 size=4500; client frame=512; window 3; receive; grant 1 -> sent 3
        window 100 -> sent 10 | credit 0""",
    # Two frames have not been seen yet: of the window of 4, two more may come [2.5.6].
    "a67: the remote window is worked out from both ids": """
        ready 10; receive; grant 5; unsee_frames 2 + window 4 + grant 5 -> sent 7""",
    "serial numbers of a publisher may wrap": """
        client next_outgoing_id=4294967290; attach initial_delivery_count=4294967290
        send 200 -> flows 170@4294967290/400 170@79/315 170@164/230 -/400""",
    # Counted from the alarm, whatever was left of the window before.
    "a69: 400 frames are tolerated and the 401st ends the session": """
        attach; send 150; alarm disk; heedless 400 -> ends -
        heedless 1 -> ends amqp:session:window-violation | ready 550""",
    # Only the window closes: what comes all the same is taken and credit renewed.
    "a69: link-credit is granted under an alarm": """
        attach; alarm; heedless 85 -> flows 170@0/400 -/0 170@85/0""",
    # A second alarm changes nothing, and one that is over does not open while another is on.
    "a69: the window opens when the last alarm is over": """
        attach; alarm memory; alarm disk; alarm disk -> windows 0
        clear memory -> windows 0
        clear disk; clear disk -> windows 0 400 | alarms memory disk memory disk
        send 300 -> windows 0 400 400""",
    "a69: a session begun under an alarm has window 0 and credit 170": """
        alarm; attach -> begun 0 | credit 170 | remote_window 0
        clear -> windows 400
        send 201 -> windows 400 400""",
    # Its client has never been told of another window (`rabbit_amqp_session.erl:init`: margin 0).
    "a69: a session begun under an alarm takes no frame": """
        alarm; attach; heedless 1 -> ends amqp:session:window-violation""",
    # On the very session that is closed.
    "a70: consumers go on under an alarm and new ones may come": """
        ready 20; receive; alarm; grant 7; settle -> terminal 7
        client c2; receive late; grant 5 -> sent 5""",
}


@rabbit
@pytest.mark.parametrize("script", WINDOWS.values(), ids=WINDOWS)
def test_session_windows_and_alarms(preset, script) -> None:
    """What the window is, when it is opened, and what an alarm makes of it."""
    talk = Talk(preset)
    talk.settled = True
    talk.play(script)


@rabbit
def test_a69_an_alarm_closes_the_window_of_every_session(preset) -> None:
    """flow(incoming-window 0) on each, and the sender's brake is named `alarm`."""
    rig = Rig(preset)
    clients = [rig.raw(name) for name in ("c1", "c2")]
    second = clients[0][0].amqp.begin()
    link = rig.sender(clients[0][1])
    rig.broker.set_alarm("memory")
    rig.rest()
    flows = [[flow.incoming_window for flow in client.frames(Flow)] for client, _ in clients]
    assert flows == [[400, 0, 0], [0]]
    assert second.counters.remote_incoming_window == 0
    assert not link.can_send
    link.available = 5
    link.flow()
    row = rig.recorder.rows[-1]
    assert (row.brake, row.brakes) == ("alarm", ("alarm", "session-window"))
    events = [(row.event, row.kind) for row in rig.recorder.rows if row.event.startswith("alarm")]
    assert events == [("alarm-set", "memory")]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 120), st.lists(st.integers(0, 9), max_size=20))
def test_invariant_6_flows_and_dispositions_are_never_held(credit, settled_at) -> None:
    """With window and credit at 0 both ways, dispositions and flows still pass."""
    rig = Rig(RMQ43)
    rig.fill("q", 10)
    client, session = rig.raw()
    receiver = rig.receiver(session)
    sender = rig.sender(session, "t")
    receiver.grant(10)
    rig.rest()
    rig.broker.set_alarm()
    session.set_incoming_window(0)
    session.flow()
    rig.rest()
    before = rig.queue().terminal
    for place in dict.fromkeys(settled_at):
        receiver.settle(place)
        session.set_incoming_window(0)
        receiver.grant(credit)
    rig.rest()
    assert rig.queue().terminal - before == len(set(settled_at))
    assert client.frames(End) == []
    assert sender.attached


def test_raw_clients_that_are_not_open_hear_of_no_alarm() -> None:
    """A connection without a session has no window to close."""
    rig = Rig(RMQ43)
    client = rig.connect(RawClient())
    rig.broker.set_alarm()
    rig.rest()
    assert client.frames(Flow) == []
    assert client.frames(Disposition) == []


@rabbit
def test_many_transfers_over_three_links_pass_as_the_window_is_refilled(preset) -> None:
    """509 on one session, whatever the link."""
    rig = Rig(preset)
    client, session = rig.raw()
    links = [rig.sender(session, name, name) for name in "abc"]
    for number in range(509):
        links[number % 3].send(data(b"m"), settled=True)
        rig.rest()
    assert client.frames(End) == []
    assert [flow.incoming_window for flow in client.frames(Flow) if flow.handle is None] == [
        400
    ] * 2
    assert sum(rig.queue(name).ready for name in "abc") == 509
