"""Captures made to measure: a conversation as frames, packed into packets that can be disturbed."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.amqp10.frame import Frame, ProtocolHeader, WireItem, encode_item
from workbench.amqp10.messaging import Accepted, Received
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    Flow,
    Open,
    Role,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Transfer,
)
from workbench.amqp10.terminus import Source, Target
from workbench.trace.packet_out import Address, PcapngWriter, TcpTalk

WRAP = 2**32
BODY = b"\x00\x53\x75\xa0\x0bsecret-body"
PASSWORD = b"\x00guest\x00pa55word"

Said = tuple[bool, WireItem]
"""A frame and whether the client sent it."""


PACKET = b"\x06\0\0\0"
"""With which a block of a packet begins."""


def blocks(capture: Path) -> Iterator[bytes]:
    """The blocks of a pcapng capture of this machine's byte order, one after the other."""
    octets, place = capture.read_bytes(), 0
    while place < len(octets):
        length = int.from_bytes(octets[place + 4 : place + 8], "little")
        yield octets[place : place + length]
        place += length


def lost(packets, chance):
    """One in twenty is missing."""
    return [one for one in packets if chance.random() > 0.05]


def written(place, how, chance, to):
    """The capture with its packets so disturbed."""
    its = list(blocks(place))
    packets = [block for block in its if block[:4] == PACKET]
    begun, ended = its.index(packets[0]), its.index(packets[-1])
    to.write_bytes(b"".join([*its[:begun], *how(packets, chance), *its[ended + 1 :]]))
    return to


@dataclass
class Script:
    """A consumer and a publisher on one session; no two frames of a direction are alike.

    The client's and the broker's channels and handles differ on purpose, and all sequence
    numbers start shortly before they wrap.
    """

    name: str = "q"
    first: int = WRAP - 3
    out: int = WRAP - 2
    back: int = WRAP - 1
    rounds: int = 3
    settled: bool = False
    said: list[Said] = field(default_factory=list)

    def frames(self) -> list[Said]:
        self.said = []
        self._open()
        for number in range(self.rounds):
            self._round(number)
        self._drain()
        self._say(True, 5, Detach(handle=7, closed=True))
        self._say(False, 2, Detach(handle=0, closed=True))
        self._say(True, 0, Close())
        self._say(False, 0, Close())
        return self.said

    def _say(self, from_client: bool, channel: int, what: object, payload: bytes = b"") -> None:
        self.said.append((from_client, Frame(channel, what, payload)))

    def _open(self) -> None:
        self.said += [(True, ProtocolHeader(3)), (False, ProtocolHeader(3))]
        self._say(False, 0, SaslMechanisms(sasl_server_mechanisms=("PLAIN",)))
        self._say(True, 0, SaslInit(mechanism="PLAIN", initial_response=PASSWORD))
        self._say(False, 0, SaslOutcome(code=SaslCode.OK))
        self.said += [(True, ProtocolHeader()), (False, ProtocolHeader())]
        self._say(True, 0, Open(container_id=f"client-{self.name}"))
        self._say(False, 0, Open(container_id="broker", max_frame_size=131072))
        window = {"incoming_window": 100, "outgoing_window": 4294967295}
        self._say(True, 5, Begin(next_outgoing_id=self.out, **window))
        self._say(False, 2, Begin(remote_channel=5, next_outgoing_id=self.back, **window))
        ends = {"name": self.name, "source": Source(address="/queues/q"), "target": Target()}
        self._say(True, 5, Attach(handle=7, role=Role.RECEIVER, **ends))
        first = {"initial_delivery_count": self.first}
        self._say(False, 2, Attach(handle=0, role=Role.SENDER, **first, **ends))
        # A link of the same name the other way, as management clients attach it.
        self._say(True, 5, Attach(handle=0, role=Role.SENDER, **first, **ends))
        self._say(False, 2, Attach(handle=7, role=Role.RECEIVER, **ends))
        self.got = self.sent = 0

    def _flow(
        self, from_client: bool, handle: int, count: int, credit: int, **more: object
    ) -> None:
        mine, theirs = (self.sent, self.got) if from_client else (self.got, self.sent)
        flow = Flow(
            next_incoming_id=((self.back if from_client else self.out) + theirs) % WRAP,
            incoming_window=100,
            next_outgoing_id=((self.out if from_client else self.back) + mine) % WRAP,
            outgoing_window=4294967295,
            handle=handle,
            delivery_count=(self.first + count) % WRAP,
            link_credit=credit,
            properties={"unique": len(self.said)},
            **more,
        )
        self._say(from_client, 5 if from_client else 2, flow)

    def _round(self, number: int) -> None:
        self.messages = number * 4
        self._flow(True, 7, self.messages, 5)
        for step in range(4):
            self._message(False, 2, 0, self.messages + step, parts=3 if step == 1 else 1)
        self._flow(False, 7, number * 2, 4)
        for step in range(2):
            self._message(True, 5, 0, number * 2 + step, parts=1)
        done = {"role": Role.RECEIVER, "settled": True, "state": Accepted()}
        self._say(True, 5, Disposition(first=self.messages, last=self.messages + 3, **done))
        self._say(False, 2, Disposition(first=number * 2, last=number * 2 + 1, **done))

    def _message(
        self, from_client: bool, channel: int, handle: int, number: int, parts: int
    ) -> None:
        for part in range(parts):
            head = {"delivery_id": number, "delivery_tag": bytes([number])} if part == 0 else {}
            # Some brokers leave `more` out where it is false; the payload keeps parts apart.
            more = {"more": True} if part < parts - 1 else {}
            # No two parts of a message are alike in their fields either.
            mark = (
                {} if part == 0 else {"state": Received(section_number=0, section_offset=self.got)}
            )
            transfer = Transfer(handle=handle, **head, **more, **mark)
            payload = BODY + bytes([number, part]) if parts > 1 else BODY
            self._say(from_client, channel, transfer, payload)
            if from_client:
                self.sent += 1
            else:
                self.got += 1

    def _drain(self) -> None:
        done = self.rounds * 4
        self._flow(True, 7, done, 6, drain=True, echo=True)
        self._flow(False, 0, done + 6, 0, drain=True, available=0)


def behind_attach(rounds: int, upto: int = 100) -> list[Said]:
    """A consumer that was attached long ago, at a broker that takes the client's handles.

    Each round grants three messages, which come; then both ends are silent but for a sign of life.
    """
    said: list[Said] = []
    for done in range(upto - 3 * rounds, upto, 3):
        grant = Flow(
            next_incoming_id=done, incoming_window=500, next_outgoing_id=1, outgoing_window=500,
            handle=0, delivery_count=done, link_credit=3,
        )  # fmt: skip
        said.append((True, Frame(0, grant)))
        for number in range(done, done + 3):
            message = Transfer(handle=0, delivery_id=number, delivery_tag=b"%d" % number)
            said.append((False, Frame(0, message, BODY)))
    return [*said, (True, Frame(0, None)), (False, Frame(0, None))]


@dataclass(frozen=True)
class Burst:
    """What one end of one connection sends at one time."""

    talk: int
    t_us: int
    from_client: bool
    data: bytes
    sizes: tuple[int, ...]


def bursts(said: Sequence[Said], talk: int = 0, start: int = 1_000, step: int = 10) -> list[Burst]:
    """Frames of one direction in a row become one burst."""
    found: list[Burst] = []
    group: list[bytes] = []
    for number, (from_client, item) in enumerate(said):
        group.append(encode_item(item))
        if number + 1 == len(said) or said[number + 1][0] != from_client:
            t_us = start + step * len(found)
            sizes = tuple(len(each) for each in group)
            found.append(Burst(talk, t_us, from_client, b"".join(group), sizes))
            group = []
    return found


class Tape:
    """Collects packets, so that tests can disturb them, and writes them as pcapng."""

    def __init__(self) -> None:
        self.packets: list[tuple[int, bytes]] = []

    def packet(self, t_us: int, data: bytes) -> None:
        self.packets.append((t_us, data))

    def write(self, path: Path, packets: Iterable[tuple[int, bytes]] | None = None) -> Path:
        stream = io.BytesIO()
        writer = PcapngWriter(stream)
        for t_us, data in self.packets if packets is None else packets:
            writer.packet(t_us, data)
        path.write_bytes(stream.getvalue())
        return path


def record(
    plan: Sequence[Burst],
    *,
    cut: random.Random | None = None,
    frame_by_frame: bool = False,
    port: int = 5672,
    handshake: bool = True,
    initial: int = WRAP - 40,
) -> tuple[Tape, list[list[int]]]:
    """Packets of the bursts of all talks, and the indexes of each burst's packets.

    Args:
        plan: bursts in order of time.
        cut: where to cut a burst into segments; None for one segment a burst.
        frame_by_frame: one segment a frame.
        port: the broker's.
        handshake: begin with SYN.
        initial: TCP sequence number of both ends; by default it wraps early.
    """
    tape = Tape()
    talks: dict[int, TcpTalk] = {}
    groups: list[list[int]] = []
    for burst in plan:
        talk = talks.get(burst.talk)
        if talk is None:
            client = Address(ip="10.0.0.1", port=40_000 + burst.talk)
            talk = talks[burst.talk] = TcpTalk(
                tape,
                client,
                Address(ip="10.0.0.2", port=port),
                (initial, initial),  # type: ignore[arg-type]
            )
            if handshake:
                talk.open(0)
        before = len(tape.packets)
        for piece in _pieces(burst, cut, frame_by_frame):
            talk.send(burst.t_us, piece, from_client=burst.from_client)
        groups.append(list(range(before, len(tape.packets))))
    return tape, groups


def _pieces(burst: Burst, cut: random.Random | None, frame_by_frame: bool) -> list[bytes]:
    data = burst.data
    if frame_by_frame:
        edges = [sum(burst.sizes[:n]) for n in range(len(burst.sizes) + 1)]
    elif cut is None:
        edges = [0, len(data)]
    else:
        count = cut.randint(0, min(6, len(data) - 1))
        edges = [0, *sorted(cut.sample(range(1, len(data)), count)), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]
