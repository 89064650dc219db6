"""Clients that say anything at any time over AMQP 0-10, to Qpid C++ and to Broker-J."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp010 import strategies as every
from workbench import presets
from workbench.amqp010 import commands as c
from workbench.amqp010 import controls as k
from workbench.amqp010.composite import COMMANDS, CONTROLS
from workbench.amqp010.errors import DecodeError
from workbench.amqp010.frame import (
    Frame,
    FrameReader,
    Headers,
    control_frame,
    encode_item,
    frames_of,
)
from workbench.amqp010.structs import DeliveryProperties
from workbench.amqp010.values import SequenceSet
from workbench.broker import Broker
from workbench.sim import VirtualClock

from .qpid_client import Client

NUMBER = st.sampled_from([0, 1, 2, 5, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
NAME = st.sampled_from(["q", "q", "d", "e", "amq.fanout", ""])
NEAR = {
    "bit": st.booleans(),
    "uint8": st.integers(0, 3),
    "uint16": st.integers(0, 3),
    "uint32": NUMBER,
    "sequence-no": NUMBER,
    "str8": NAME,
    "str16": NAME,
    "vbin16": st.sampled_from([b"c1", b"c1", b"t"]),
    "sequence-set": st.lists(st.tuples(NUMBER, NUMBER), max_size=3).map(
        lambda ranges: SequenceSet(tuple(ranges))
    ),
    "map": st.sampled_from([{}, {"qpid.max_count": 3}, {"qpid.flow_stop_count": -1}]),
}
"""Values that may hit something that is there."""


@cache
def near(kind):
    """Values of a class with fields that hit, left out now and then."""
    fields = {
        name: NEAR[type_] if type_ == "bit" else NEAR.get(type_, st.none()) | st.none()
        for name, type_ in kind.FIELDS
    }
    if kind in COMMANDS.values():
        fields["sync"] = st.booleans()
    return st.builds(kind, **fields)


CHANNEL = st.sampled_from([0, 0, 0, 1])
TO_Q = Headers((DeliveryProperties(routing_key="q"),))
MESSAGES = st.builds(
    lambda channel, command, headers, payload: list(
        frames_of(channel, command, headers, payload, max_frame_size=4096)
    ),
    CHANNEL,
    st.builds(c.MessageTransfer, sync=st.booleans()) | near(c.MessageTransfer),
    st.sampled_from([None, Headers(), TO_Q, TO_Q]) | every.headers,
    st.sampled_from([None, b"", b"x", bytes(9000)]),
)
USUAL = [
    c.QueueDeclare("q", arguments={"qpid.max_count": 3}), c.MessageSubscribe("q", "e", 0, 0),
    c.MessageSubscribe("q", "e", 1, 0, exclusive=True), c.MessageCancel("d"),
    c.MessageFlow("d", 0, 2),
    c.MessageFlow("d", 1, 2**32 - 1), c.ExchangeBind("q", "amq.fanout", ""), c.QueueDelete("q"),
]  # fmt: skip
ATTACH = st.builds(
    lambda channel, name, point: [
        control_frame(channel, k.SessionAttach(name)),
        control_frame(channel, k.SessionCommandPoint(point, 0)),
    ],
    st.sampled_from([1, 1, 0]),
    NEAR["vbin16"],
    NUMBER,
)
CONTROL = st.builds(
    lambda channel, control: [control_frame(channel, control)],
    CHANNEL,
    st.sampled_from([one for one in CONTROLS.values() if one.CODE >> 8 == 2]).flatmap(near),
)


def _commands(which):
    return st.builds(lambda channel, one: list(frames_of(channel, one)), CHANNEL, which)


USUALLY = _commands(st.sampled_from(USUAL))
COMMAND = _commands(st.sampled_from(list(COMMANDS.values())).flatmap(near))
SAID = st.one_of(USUALLY, USUALLY, USUALLY, MESSAGES, MESSAGES, ATTACH, CONTROL, COMMAND)


FLAGS = ["first_segment", "last_segment", "first_frame", "last_frame"]
ALL_SAID = st.lists(SAID, max_size=12)
ACCIDENTS = st.sampled_from([0, 0, 1, 2])
ACCIDENT = st.sampled_from(["lost", "twice", "early", "flag"])
FLAG = st.sampled_from(FLAGS)


@st.composite
def frames(draw):
    """What is said, in order but for an accident here and there."""
    found = [frame for one in draw(ALL_SAID) for frame in one]
    for _ in range(draw(ACCIDENTS)):
        if not found:
            break
        at = draw(st.integers(0, len(found) - 1))
        match draw(ACCIDENT):
            case "lost":
                del found[at]
            case "twice":
                found.insert(at, found[at])
            case "early":
                found.insert(0, found.pop(at))
            case "flag":
                found[at] = _mistaken(found[at], draw(FLAG))
    return found


def _mistaken(frame, flag):
    names = {name: getattr(frame, name) for name in FLAGS}
    names[flag] = not names[flag]
    content = frame.content
    if not isinstance(content, bytes) and not (names["first_frame"] and names["last_frame"]):
        content = content.encode()
    return Frame(frame.channel, frame.segment_type, content, **names)


@settings(max_examples=300, deadline=None)
@given(frames(), st.sampled_from(["qpid-cpp", "broker-j"]), st.booleans())
def test_whatever_a_client_says_it_ends_itself_alone(said, preset, at_once) -> None:
    """No frame makes the broker stumble, what is held comes back, and the next client is served."""
    broker = Broker(VirtualClock(), presets.get(preset))
    client, other = Client(broker), Client(broker)
    other.do(c.QueueDeclare("other"))
    client.do(c.QueueDeclare("q"))
    client.put(*["q"] * 4)
    client.subscribe(MESSAGE=2, BYTE=c.UNLIMITED)
    client.react = lambda events: None  # it answers nothing
    reader = FrameReader(mid_stream=True)
    for octets in map(encode_item, said):
        try:
            heard = reader.feed(octets)
        except DecodeError as error:
            client.end.undecodable(error)
            break
        for one in heard:
            client.wire.send(client, one.item)
        if at_once:
            client.rest()
    client.rest()
    assert other.amqp.opened and other.session.attached
    client.end.lost()
    client.rest()
    for queue in broker.queues.values():
        state = queue.queue
        assert state.unsettled == 0 and state.consumers() == ()
        assert state.ready + state.terminal == state.enqueued
    other.put("other", "other")
    other.subscribe("other", "d", MESSAGE=1, BYTE=c.UNLIMITED)
    assert len(other.messages) == 1
