"""Where the fields of a recorded frame lie in its octets, for views: they know no codec."""

from __future__ import annotations

from typing import NamedTuple

from workbench.amqp091.spans import field_spans as spans_091
from workbench.amqp10.spans import field_spans

from .schema import AMQP_0_9_1, AMQP_1_0


class Place(NamedTuple):
    """A run of octets with a meaning; groups come before their parts.

    Attributes:
        path: which field, such as `flow.link_credit`.
        type_name: its type in the specification.
        constructor: the encoding that its first octet names, or empty.
        start: offset of its first octet in the frame.
        end: offset behind its last.
        text: its value for a person.
    """

    path: str
    type_name: str
    constructor: str
    start: int
    end: int
    text: str


def places(raw: bytes, protocol: str = AMQP_1_0) -> list[Place]:
    """Every field of a frame or protocol header; any octets give places."""
    if protocol == AMQP_0_9_1:
        return [
            Place(span.path, span.type_name, "", span.start, span.end, span.text)
            for span in spans_091(raw)
        ]
    return [
        Place(span.path, span.type_name, span.constructor, span.start, span.end, span.value_text)
        for span in field_spans(raw)
    ]
