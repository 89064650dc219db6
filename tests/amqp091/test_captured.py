"""What RabbitMQ 4.3.6 and its clients wrote: read, written again, and said by our ends."""

from collections import Counter, deque
from decimal import Decimal

import pytest

from tests.amqp091.streams import ERRORS, NAMES, listing, octets_of
from workbench.amqp091 import values
from workbench.amqp091.connection import Connection
from workbench.amqp091.errors import DecodeError, ReplyCode
from workbench.amqp091.events import MethodReceived, ProtocolViolation
from workbench.amqp091.frame import (
    ContentHeader,
    FrameReader,
    ProtocolHeader,
    Undecodable,
    encode_item,
    kind_of,
)
from workbench.amqp091.methods import CONTENT, ConnectionStartOk, ConnectionTune
from workbench.amqp091.settings import ConnectionSettings

LETTERS = {
    bool: "t", str: "S", dict: "F", list: "A", int: "I", float: "d", Decimal: "D", bytes: "x",
    values.Byte: "b", values.Short: "s", values.Long: "l",
}  # fmt: skip


def typed(table):
    return {name: (LETTERS[type(one)], as_listed(one)) for name, one in table.items()}


def as_listed(value):
    return typed(value) if isinstance(value, dict) else value


def fields_of(payload):
    """A payload's fields as the listing has them: reserved ones are left out there."""
    if isinstance(payload, bytes):
        return {"size": len(payload)}
    if isinstance(payload, ContentHeader):
        told = {"class": payload.class_id, "body-size": payload.body_size}
        properties = payload.properties
        for name in properties.__struct_fields__:
            if getattr(properties, name) is not None:
                told[name.replace("_", "-")] = as_listed(getattr(properties, name))
        return told
    told = {}
    for name in payload.__struct_fields__:
        value = getattr(payload, name)
        value = value.decode("latin-1") if isinstance(value, bytes) else value
        name = {"nowait": "no-wait", "global_": "global"}.get(name, name.replace("_", "-"))
        if name != "ticket":
            told[name] = as_listed(value)
    return told


def frames_of(pieces):
    """Frames of both directions in the order of the wire: from_client, item, octets."""
    readers = {True: FrameReader(0), False: FrameReader(0, mid_stream=True)}
    for from_client, octets in pieces:
        try:
            found = readers[from_client].feed(octets)
        except DecodeError as error:
            found = error.completed
        for raw in found:
            yield from_client, raw.item, raw.raw


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_is_written_to_the_octets_that_it_was_read_from(name):
    """Tables keep order and type letters, so nothing is different: no difference is left to say."""
    count = 0
    for pieces in octets_of(name):
        for _, item, octets in frames_of(pieces):
            assert encode_item(item) == octets
            count += 1
    assert count > 30


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_says_what_the_listing_has(name):
    """Another reader made the listing; behind an error of framing nothing is read."""
    listed = listing(name)
    found = [
        [
            (from_client, item.channel, kind_of(item), fields_of(item.payload))
            for from_client, item, _ in frames_of(pieces)
            if not isinstance(item, ProtocolHeader)
            and item.payload is not None
            and not isinstance(item.payload, Undecodable)
        ]
        for pieces in octets_of(name)
    ]
    found = [frames for frames in found if frames]
    assert len(found) == len(listed)
    for frames, lines in zip(found, listed.values(), strict=True):
        wrong = [line for line in lines if line.kind == "unknown.method"]
        told = [
            (*line[:3], {key: value for key, value in line.fields.items() if key != "body"})
            for line in lines
            if line not in wrong
        ]
        for from_client in (True, False):  # the listing has the two in the order of the packets
            mine = [frame for frame in frames if frame[0] == from_client]
            theirs = [frame for frame in told if frame[0] == from_client]
            assert mine == theirs[: len(mine)]
            assert len(theirs) - len(mine) <= (name == ERRORS) * from_client * 3


class Lockstep:
    """Our server hears the captured client, and says what the captured broker said.

    What the protocol itself wants said is not told to it: it has to say it of its own accord.
    """

    OWN = (
        "connection.start", "connection.tune", "connection.open-ok", "connection.close-ok",
        "channel.open-ok", "channel.close-ok",
    )  # fmt: skip

    def __init__(self, settings, lets_in):
        self.lets_in = lets_in  # whom the front end refuses it does not tune
        self.unread = b""  # while the broker is blocked it does not read
        self.said = deque()
        self.server = Connection(is_client=False, emit=self.said.append, settings=settings)
        self.reader = FrameReader(self.server.frame_max)
        self.violations = []
        self.told = Counter()  # closes that the broker's front end, not the endpoint, decides

    def hear(self, octets):
        if self.server.blocked is not None:
            self.unread += octets
            return
        try:
            for at in range(len(octets)):  # an octet at a time: frame-max changes in between
                for raw in self.reader.feed(octets[at : at + 1]):
                    for event in self.server.apply(raw.item):
                        self.take(event)
                    self.reader.frame_max = self.server.frame_max
        except DecodeError as error:
            for event in self.server.undecodable(error):
                self.take(event)

    def take(self, event):
        if isinstance(event, ProtocolViolation):
            self.violations.append(event)
        refused = isinstance(event, MethodReceived) and isinstance(event.method, ConnectionStartOk)
        if self.lets_in or not refused:
            self.server.answer(event)

    def say(self, item, content):
        """What the broker said; `content` is header and body frames behind it."""
        payload = item.payload
        kind = kind_of(item)
        if self.said and kind == kind_of(self.said[0]):
            mine = self.said.popleft()
            if kind not in ("connection.start", "connection.tune"):
                assert mine == item
            return
        assert kind not in self.OWN
        if kind == "heartbeat":
            return
        if item.channel == 0:
            self.server.send(payload)
        elif type(payload) in CONTENT:
            header, *body = (one.payload for one in content)
            channel = self.server.channels[item.channel]
            channel.send_content(payload, b"".join(body), header.properties)
        else:
            if kind == "channel.close":
                self.told[payload.reply_code] += 1
            self.server.channels[item.channel].send(payload)
        for one in (item, *content):
            assert self.said.popleft() == one
        octets, self.unread = self.unread, b""
        self.hear(octets)


def replay(pieces):
    """Both directions of a connection in lockstep."""
    kinds = {kind_of(item): item for _, item, _ in frames_of(pieces)}
    lets_in = "connection.tune" in kinds
    tune = kinds["connection.tune"].payload if lets_in else ConnectionTune()
    both = Lockstep(
        ConnectionSettings(
            channel_max=tune.channel_max,
            frame_max=tune.frame_max,
            heartbeat_s=tune.heartbeat,
            least_frame_max=8192,
            terse=True,
            offered=ProtocolHeader(3, 1, 0, 0),
        ),
        lets_in,
    )
    reader = FrameReader(0, mid_stream=True)
    waiting = []
    for from_client, octets in pieces:
        if from_client:
            both.hear(octets)
            continue
        for raw in reader.feed(octets):
            waiting.append(raw.item)
            first = waiting[0]
            if isinstance(first, ProtocolHeader):
                assert both.said.popleft() == waiting.pop()
                continue
            if type(first.payload) in CONTENT:
                header = waiting[1].payload if len(waiting) > 1 else None
                have = sum(len(one.payload) for one in waiting[2:])
                if header is None or have < header.body_size:
                    continue
            both.say(first, waiting[1:])
            waiting = []
    assert not waiting
    return both


@pytest.mark.parametrize("name", [name for name in NAMES if name != ERRORS])
def test_our_server_follows_what_rabbitmq_said_frame_by_frame(name):
    """Each frame is legal where it stood, and split alike; nothing is said beside it."""
    for pieces in octets_of(name):
        both = replay(pieces)
        assert not both.said
        assert {v.code for v in both.violations} <= {ReplyCode.NOT_ALLOWED}
        assert set(both.told) <= {404}


OF_THE_FRONT_END = {"E9": 406, "E11": 405}
SILENT = {
    "E7": "there is no method 999 of class 60",
    "E8": "there is no method 10 of class 77",
    "E20": "negotiated channel_max = 0 is higher than the maximum allowed value (2047)",
    "E21": "negotiated frame_max = 4096 is lower than the minimum allowed value (8192)",
    "E22": "negotiated frame_max = 2048 is lower than the minimum allowed value (8192)",
    "E23": "negotiated frame_max = 262144 is higher than the maximum allowed value (131072)",
}


def test_our_server_closes_with_rabbitmqs_code_scope_and_text():
    """Of 25 wrong things; where RabbitMQ ends TCP without a word, ours tells its owner why."""
    names = list(listing(ERRORS))
    names.insert(names.index("E25"), "E24")  # of which the listing has protocol headers alone
    kept = [pieces for pieces in octets_of(ERRORS) if pieces]
    spoken = 0
    for name, pieces in zip(names, kept, strict=True):
        both = replay(pieces)
        assert not both.said, name
        assert dict(both.told) == ({OF_THE_FRONT_END[name]: 1} if name in OF_THE_FRONT_END else {})
        if name in SILENT:
            assert both.server.ended
            assert [violation.text for violation in both.violations] == [SILENT[name]]
        else:
            spoken += len(both.violations)
    assert spoken == 13
