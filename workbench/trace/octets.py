"""Where the fields of a recorded frame lie in its octets, for views: they know no codec."""

from __future__ import annotations

from typing import NamedTuple

from workbench.amqp010.spans import frame_parts as parts_010
from workbench.amqp091.spans import frame_parts as parts_091
from workbench.amqp10.spans import field_spans

from .schema import AMQP_0_9_1, AMQP_0_10, AMQP_1_0


class Place(NamedTuple):
    """A run of octets with a meaning; groups come before their parts.

    Attributes:
        path: which field, such as `flow.link_credit`.
        start: offset of its first octet in the frame.
        end: offset behind its last.
        text: its value for a person.
    """

    path: str
    start: int
    end: int
    text: str


_PARTS = {AMQP_0_9_1: parts_091, AMQP_0_10: parts_010}


def places(raw: bytes, protocol: str = AMQP_1_0) -> list[Place]:
    """Every field of a frame or protocol header; any octets give places."""
    parts = _PARTS.get(protocol)
    if parts is None:
        return [Place(span.path, span.start, span.end, span.value_text)
                for span in field_spans(raw)]  # fmt: skip
    found, at = [], 0
    for path, octets, text in parts(raw):
        if octets:
            found.append(Place(path, at, at + octets, text))
            at += octets
    return found
