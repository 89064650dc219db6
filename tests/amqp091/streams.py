"""The captures of RabbitMQ 4.3.6: octets of each connection, and the listing made beside them."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from workbench.capture.packet import segment_of
from workbench.capture.pcap import CaptureReader
from workbench.capture.tcp import Reassembler

FOLDER = Path(__file__).parents[2] / "data/captures/amqp091"
NAMES = sorted(path.stem for path in FOLDER.glob("*.pcapng"))
ERRORS = "rmq43_e1_amqp091_errors"

LINE = re.compile(r" *(\d+|-) +([\d.]+) (\w+) +([CB]) (ch\d+|-) +(\S+) ?(.*)$")


class Listed(NamedTuple):
    """A line of the listing: who sent it, on which channel, what it is, and its fields."""

    from_client: bool
    channel: int
    kind: str
    fields: dict


@cache
def octets_of(name):
    """By connection, in order of opening: pieces `(from_client, octets)` as they came."""
    reassembler = Reassembler()
    pieces = []
    with (FOLDER / f"{name}.pcapng").open("rb") as stream:
        for packet in CaptureReader(stream, name):
            segment = segment_of(packet)
            if segment is not None and not isinstance(segment, str):
                pieces += reassembler.feed(segment, packet.t_us, packet.number)
    pieces += reassembler.finish()
    found = [[] for _ in reassembler.conversations]
    for piece in pieces:
        talk = piece.direction.conversation
        assert not piece.gap
        found[talk.number - 1].append((piece.direction.source == talk.opened_by, piece.data))
    return found


@cache
def listing(name):
    """Frames of the listing by connection, in order of opening, without those outside AMQP."""
    found = {}
    for line in (FOLDER / f"{name}.frames.txt").read_text().splitlines():
        match = LINE.match(line)
        if match is None or match[6] in ("protocol-header", "heartbeat") or "tcp." in match[6]:
            continue
        fields = split(match[7])
        listed = Listed(match[4] == "C", int(match[5][2:]), match[6], fields)
        found.setdefault(match[3], []).append(listed)
    return found


def split(text):
    """`key=value` pairs; a value in Python's notation, a table with the letters of its values."""
    fields = {}
    at = 0
    while match := re.compile(r" ?([\w-]+)=").match(text, at):
        value, at = value_at(text, match.end())
        fields[match[1]] = value
    assert at == len(text), text[at:]
    return fields


def value_at(text, at):
    if text[at] == "{":
        table, at = {}, at + 1
        while text[at] != "}":
            match = re.compile(r"(?:, )?([\w.@-]+)\((.)\)=").match(text, at)
            value, at = value_at(text, match.end())
            table[match[1]] = (match[2], value)
        return table, at + 1
    match = re.compile(r"b?'(?:[^'\\]|\\.)*'|b?\"(?:[^\"\\]|\\.)*\"|[\w.-]+").match(text, at)
    return ast.literal_eval(match[0]), match.end()
