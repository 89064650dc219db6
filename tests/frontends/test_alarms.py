"""Session windows and resource alarms under the presets of RabbitMQ.

400, again at 200; an alarm makes the window 0, 400 more frames are tolerated, the 401st ends the
session. Measured on RabbitMQ 4.0.5 and 4.3.6.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import RawClient, Rig, consuming, data
from workbench import presets, serial
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.performatives import Begin, Disposition, End, Flow, Transfer
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.frontends import message_of

RMQ43 = presets.get("rmq4.3")
BOTH = pytest.mark.parametrize("preset", [presets.get("rmq4.0"), RMQ43], ids=lambda p: p.name)


def windows(client) -> list[int]:
    """incoming-window of the flows about no link."""
    return [flow.incoming_window for flow in client.frames(Flow) if flow.handle is None]


def ignore_window(session, link) -> None:
    """A publisher that heeds neither the window nor its credit."""
    session.counters.remote_incoming_window = 100_000
    link.counters.link_credit = 100_000


def publish(rig, link, count: int, settled: bool = True) -> None:
    for number in range(count):
        assert link.can_send, number
        link.send(data(b"m"), settled=settled)
        rig.rest()


@BOTH
def test_a68_the_window_is_400_and_opened_again_when_200_are_left(preset) -> None:
    """The flow after the 200th transfer names no link, and no flow about a link opens it."""
    rig = Rig(preset)
    client, session = rig.raw()
    link = rig.sender(session)
    assert client.frames(Begin)[0].incoming_window == 400
    publish(rig, link, 199)
    assert windows(client) == []
    assert [f.incoming_window for f in client.frames(Flow)] == [400, 315, 230]
    publish(rig, link, 1)
    assert windows(client) == [400]
    publish(rig, link, 55)
    assert client.frames(Flow)[-1].incoming_window == 345


@BOTH
def test_if_both_are_due_the_link_is_told_first_and_both_flows_have_the_window(preset) -> None:
    """rabbit_amqp_session.erl: the window is counted first, its flow is sent last."""
    rig = Rig(replace(preset, publisher_credit=20, incoming_window=20))
    client, session = rig.raw()
    publish(rig, rig.sender(session), 10)
    told = [(flow.handle, flow.link_credit, flow.incoming_window) for flow in client.frames(Flow)]
    assert told == [(0, 20, 20), (0, 20, 20), (None, None, 20)]


@BOTH
def test_a68_max_incoming_window_can_be_set(preset) -> None:
    """10: opened again when 5 are left."""
    rig = Rig(replace(preset, incoming_window=10))
    client, session = rig.raw()
    link = rig.sender(session)
    assert client.frames(Begin)[0].incoming_window == 10
    publish(rig, link, 4)
    assert windows(client) == []
    publish(rig, link, 1)
    assert windows(client) == [10]


def test_a65_the_window_counts_frames_and_credit_counts_messages() -> None:
    """One message of ten frames: ten of the window, one of the credit."""
    rig = Rig(replace(RMQ43, max_frame_size=512))
    _, session = rig.raw()
    link = rig.sender(session)
    link.send(data(b"x" * 4800), settled=True)
    rig.rest()
    broker = rig.broker.connections["c1"].amqp.sessions[0]
    assert broker.counters.frames_in == 10
    assert broker.counters.incoming_window == 390
    assert link.credit == 169


def test_a66_a_large_message_is_held_by_the_window_in_spite_of_credit() -> None:
    """Credit 1, window 3, ten frames: three come, the rest when the window opens."""
    rig = Rig(RMQ43)
    rig.broker.declare("q").fill(map(message_of, [b"x" * 4500]))
    client, session = rig.raw(settings=ConnectionSettings(max_frame_size=512))
    session.set_incoming_window(3)
    session.flow()
    link = rig.receiver(session)
    link.grant(1)
    rig.rest()
    assert len(client.frames(Transfer)) == 3
    session.set_incoming_window(100)
    session.flow()
    rig.rest()
    assert len(client.frames(Transfer)) == 10
    assert link.credit == 0


@BOTH
def test_a67_the_remote_window_is_worked_out_from_both_ids(preset) -> None:
    """next-incoming-id 3, window 4, own next-outgoing-id 5: two more frames may come [2.5.6]."""
    rig, client, session, link = consuming(preset, 10)
    link.grant(5)
    rig.rest()
    seen = session.counters.next_incoming_id
    session.counters.next_incoming_id = (
        seen - 2
    ) % serial.MODULUS  # two frames have not been seen yet
    session.set_incoming_window(4)
    link.grant(5)
    rig.rest()
    assert len(client.frames(Transfer)) == 7


@BOTH
def test_a69_an_alarm_closes_the_window_of_every_session(preset) -> None:
    """flow(incoming-window 0) on each, and the sender's brake is named `alarm`."""
    rig = Rig(preset)
    clients = [rig.raw(name) for name in ("c1", "c2")]
    second = clients[0][0].amqp.begin()
    link = rig.sender(clients[0][1])
    rig.broker.set_alarm("memory")
    rig.rest()
    assert [windows(client) for client, _ in clients] == [[0, 0], [0]]
    assert second.counters.remote_incoming_window == 0
    assert not link.can_send
    link.available = 5
    link.flow()
    row = rig.recorder.rows[-1]
    assert (row.brake, row.brakes) == ("alarm", ("alarm", "session-window"))
    events = [(row.event, row.kind) for row in rig.recorder.rows if row.event.startswith("alarm")]
    assert events == [("alarm-set", "memory")]


@BOTH
def test_a69_400_frames_are_tolerated_and_the_401st_ends_the_session(preset) -> None:
    """Counted from the alarm, whatever was left of the window before."""
    rig = Rig(preset)
    client, session = rig.raw()
    link = rig.sender(session)
    publish(rig, link, 150)
    rig.broker.set_alarm("disk")
    rig.rest()
    for number in range(401):
        ignore_window(session, link)
        link.send(data(b"m"), settled=True)
        rig.rest()
        assert (client.frames(End) == []) is (number < 400), number
    (end,) = client.frames(End)
    assert end.error.condition == ErrorCondition.WINDOW_VIOLATION
    assert rig.queue().ready == 550


@BOTH
def test_a69_link_credit_is_granted_under_an_alarm(preset) -> None:
    """Only the window closes: what comes all the same is taken and credit renewed."""
    rig = Rig(preset)
    client, session = rig.raw()
    link = rig.sender(session)
    rig.broker.set_alarm()
    rig.rest()
    for _ in range(85):
        ignore_window(session, link)
        link.send(data(b"m"), settled=True)
        rig.rest()
    grants = [(f.link_credit, f.incoming_window) for f in client.frames(Flow) if f.handle == 0]
    assert grants == [(170, 400), (170, 0)]


@BOTH
def test_a69_the_window_opens_when_the_last_alarm_is_over(preset) -> None:
    """A second alarm changes nothing, and one that is over does not open while another is on."""
    rig = Rig(preset)
    client, session = rig.raw()
    link = rig.sender(session)
    rig.broker.set_alarm("memory")
    rig.broker.set_alarm("disk")
    rig.broker.set_alarm("disk")
    rig.rest()
    assert windows(client) == [0]
    rig.broker.clear_alarm("memory")
    rig.rest()
    assert windows(client) == [0]
    rig.broker.clear_alarm("disk")
    rig.broker.clear_alarm("disk")
    rig.rest()
    assert windows(client) == [0, 400]
    publish(rig, link, 300)
    assert windows(client) == [0, 400, 400]
    words = [row.kind for row in rig.recorder.rows if row.event.startswith("alarm")]
    assert words == ["memory", "disk", "memory", "disk"]


@BOTH
def test_a69_a_session_begun_under_an_alarm_has_window_0_and_credit_170(preset) -> None:
    """It opens with the rest; 400 frames are tolerated there too."""
    rig = Rig(preset)
    rig.broker.set_alarm()
    client, session = rig.raw()
    link = rig.sender(session)
    assert client.frames(Begin)[0].incoming_window == 0
    assert link.credit == 170
    assert not link.can_send
    rig.broker.clear_alarm()
    rig.rest()
    assert windows(client) == [400]
    publish(rig, link, 201)
    assert windows(client) == [400, 400]


@BOTH
def test_a70_consumers_go_on_under_an_alarm_and_new_ones_may_come(preset) -> None:
    """The old consumer gets messages and settles them, on the very session that is closed."""
    rig, _, _, link = consuming(preset, 20)
    rig.broker.set_alarm()
    rig.rest()
    link.grant(7)
    rig.rest()
    assert len(link.unsettled) == 7
    for delivery_id in tuple(link.unsettled):
        link.settle(delivery_id)
    rig.rest()
    assert rig.queue().terminal == 7
    other, other_session = rig.raw("c2")
    rig.receiver(other_session, name="late").grant(5)
    rig.rest()
    assert len(other.frames(Transfer)) == 5


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["publish", "burst", "set memory", "set disk", "clear memory", "clear disk",
                         "wait", "step"]),
        max_size=50,
    ),
    st.sampled_from([0, 300]),
)  # fmt: skip
def test_invariants_5_and_15_of_windows_and_alarms(acts, latency) -> None:
    """A publisher that obeys is never ended, and starts nothing once it has seen window 0."""
    rig = Rig(RMQ43, latency_us=latency)
    client, session = rig.raw()
    link = rig.sender(session)
    sent = 0
    for act in acts:
        word, _, resource = act.partition(" ")
        match word:
            case "publish" | "burst":
                for _ in range(1 if word == "publish" else 120):
                    if link.can_send:
                        assert session.counters.remote_incoming_window > 0
                        link.send(data(b"m"))
                        sent += 1
            case "set":
                rig.broker.set_alarm(resource)
            case "clear":
                rig.broker.clear_alarm(resource)
            case "wait":
                rig.rest()
            case "step":
                rig.clock.step()
        counters = rig.broker.connections["c1"].amqp.sessions[0].counters
        assert counters.frames_in <= counters.frames_allowed
        assert 0 <= counters.incoming_window <= 400
        told = session.counters
        assert told.remote_incoming_window >= 0
    rig.rest()
    assert client.frames(End) == []
    assert rig.queue().ready == sent
    if rig.broker.alarms:
        assert session.counters.remote_incoming_window == 0
    else:
        assert session.counters.remote_incoming_window > 200


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


@BOTH
def test_serial_numbers_of_a_publisher_may_wrap(preset) -> None:
    """From 4294967290 both ways: grants at delivery-count 79 and 164, window at id 194."""
    start = 4294967290
    rig = Rig(preset)
    client, session = rig.raw(session_settings=SessionSettings(next_outgoing_id=start))
    link = rig.sender(session, initial_delivery_count=start)
    publish(rig, link, 200)
    told = [(f.next_incoming_id, f.delivery_count, f.link_credit) for f in client.frames(Flow)]
    assert told == [(start, start, 170), (79, 79, 170), (164, 164, 170), (194, None, None)]


@BOTH
def test_many_transfers_over_three_links_pass_as_the_window_is_refilled(preset) -> None:
    """509 on one session, whatever the link."""
    rig = Rig(preset)
    client, session = rig.raw()
    links = [rig.sender(session, name, name) for name in "abc"]
    for number in range(509):
        publish(rig, links[number % 3], 1)
    assert client.frames(End) == []
    assert windows(client) == [400, 400]
    assert sum(rig.queue(name).ready for name in "abc") == 509
