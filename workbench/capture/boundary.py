"""Where a frame may begin, and what a stream speaks, by the octets alone."""

from __future__ import annotations

import re

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.frame import MAGIC
from workbench.amqp10.performatives import Transfer, decode_performative

__all__ = [
    "AMQP_0_9_1",
    "AMQP_0_10",
    "AMQP_1_0",
    "FRAME_START",
    "FRAME_START_SIZE",
    "HEARTBEAT",
    "OTHER",
    "SEARCH_FRAME",
    "TLS",
    "bad_header",
    "chain",
    "kind_of",
    "may_begin",
]

AMQP_1_0, AMQP_0_9_1, AMQP_0_10, TLS, OTHER = "amqp-1.0", "amqp-0-9-1", "amqp-0-10", "tls", "other"

SEARCH_FRAME = 1024 * 1024
"""Largest frame believed while no boundary is known."""

# A frame that begins with a performative: SIZE, DOFF 2, TYPE 0 or 1, channel, and the descriptor
# as small ulong, ulong or symbol. Frames with an extended header are rare enough to be missed
# when looking for a boundary; they are read like any other once one is found.
FRAME_START = re.compile(
    rb"(?s)....\x02[\x00\x01]..\x00"
    rb"(?:\x53[\x10-\x18\x40-\x44]|\x80\x00{7}[\x10-\x18\x40-\x44]|\xa3.amqp:)"
)
FRAME_START_SIZE = 18
HEARTBEAT = re.compile(rb"(?s)\x00\x00\x00\x08\x02\x00..\Z")


def kind_of(data: bytes) -> str | None:
    """What protocol a stream speaks, by its first octets; None while they are too few."""
    if data[:4] == MAGIC[: len(data)]:
        if len(data) < 8:
            return None
        if data[5:8] == b"\x01\x00\x00" and data[4] in (0, 2, 3):
            return AMQP_1_0
        if data[4:8] == b"\x01\x01\x00\x0a":
            return AMQP_0_10
        # 0-9-1 says 0 0 9 1; its predecessors 0-8 and 0-9 say 1 1 8 0 and 1 1 0 9.
        return AMQP_0_9_1
    if len(data) < 3:
        return None
    if 20 <= data[0] <= 23 and data[1] == 3 and data[2] <= 4:
        return TLS
    if len(data) >= 7 and data[0] in (1, 2, 3, 8):
        end = 7 + int.from_bytes(data[3:7], "big")
        if end < len(data) and data[end] == 0xCE:
            return AMQP_0_9_1
    return OTHER


def chain(data: bytes, at: int, want: int) -> tuple[int, int]:
    """How many whole frames stand in a row here, up to `want`; -1 if it is no boundary.

    The second value is where the last of them ends.
    """
    frames = 0
    while frames < want and len(data) - at >= 8:
        size = int.from_bytes(data[at : at + 4], "big")
        if kind_of(data[at : at + 8]) == AMQP_1_0:
            size = 8
        elif not may_begin(data[at : at + 8], SEARCH_FRAME):
            return -1, at
        elif at + size > len(data):
            return frames, at
        elif not _is_frame(data, at, size):
            return -1, at
        frames += 1
        at += size
    if not may_begin(data[at : at + 8], SEARCH_FRAME):
        return -1, at
    return frames, at


def _is_frame(data: bytes, at: int, size: int) -> bool:
    """Whether a frame of this size stands here; reads it in place."""
    body = at + 4 * data[at + 4]
    if body >= at + size:
        return size == 8
    try:
        performative, end = decode_performative(data, body, at + size)
    except DecodeError:
        return False
    if data[at + 5] != performative.FRAME_TYPE:
        return False
    return end == at + size or type(performative) is Transfer


def may_begin(head: bytes, limit: int) -> bool:
    """Whether a frame or protocol header may begin with these octets, as far as they are there."""
    if head[:4] == MAGIC:
        return True
    if len(head) < 8:
        return True
    return 8 <= int.from_bytes(head[:4], "big") <= limit and head[4] >= 2 and head[5] <= 1


def bad_header(head: bytes, limit: int) -> str:
    """Why no frame begins with these octets, for a person."""
    size = int.from_bytes(head[:4], "big")
    if not 8 <= size <= limit:
        return f"no frame begins here: SIZE {size}, believed are 8 to {limit}"
    if head[4] < 2:
        return f"no frame begins here: DOFF {head[4]}, the least is 2"
    return f"no frame begins here: TYPE {head[5]}, legal are 0 (AMQP) and 1 (SASL)"
