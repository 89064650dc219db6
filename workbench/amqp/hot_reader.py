"""A short cut for reading the three frames that a busy connection consists of.

Transfer, flow and disposition are read here without the tables of `composite`. A reader gives
`None` for whatever it does not know at sight (a wide list, a symbolic descriptor, a field of a
rare kind, any fault); the plain path then reads the frame, or says what is wrong with it. A test
proves that where both give an answer it is the same.
"""

import struct
from collections.abc import Callable
from typing import TypeAlias

from workbench.amqp.outcome import Accepted
from workbench.amqp.performatives import (
    Disposition,
    Flow,
    Performative,
    Role,
    Transfer,
)

HotReader: TypeAlias = Callable[[bytes, int, int, int], tuple[Performative, int] | None]

_uint = struct.Struct(">I").unpack_from

_transfer = Transfer._draft
_flow = Flow._draft
_disposition = Disposition._draft

_BOOLEANS = {0x40: None, 0x41: True, 0x42: False}
_ACCEPTED = Accepted()
_ACCEPTED_OCTETS = _ACCEPTED.encode()


def _read_transfer(data: bytes, at: int, count: int, stop: int) -> tuple[Performative, int] | None:
    """Reads handle, delivery-id, delivery-tag, message-format, settled, more."""
    if not 1 <= count <= 6:
        return None
    code = data[at]
    if code == 0x43:
        handle = 0
        at += 1
    elif code == 0x52:
        handle = data[at + 1]
        at += 2
    else:
        return None
    delivery_id = delivery_tag = message_format = settled = more = None
    if count > 1:
        code = data[at]
        if code == 0x52:
            delivery_id = data[at + 1]
            at += 2
        elif code == 0x70:
            delivery_id = _uint(data, at + 1)[0]
            at += 5
        elif code == 0x43:
            delivery_id = 0
            at += 1
        elif code == 0x40:
            at += 1
        else:
            return None
        if count > 2:
            code = data[at]
            if code == 0xA0:
                begin = at + 2
                at = begin + data[at + 1]
                if at - begin > 32:
                    return None
                delivery_tag = data[begin:at]
            elif code == 0x40:
                at += 1
            else:
                return None
            if count > 3:
                code = data[at]
                if code == 0x43:
                    message_format = 0
                elif code != 0x40:
                    return None
                at += 1
                if count > 4:
                    settled = _BOOLEANS[data[at]]
                    at += 1
                    if count > 5:
                        more = _BOOLEANS[data[at]]
                        at += 1
    if at != stop:
        return None
    value = _transfer(
        handle, delivery_id, delivery_tag, message_format, settled, more,
        None, None, None, None, None,
    )  # fmt: skip
    value.__class__ = Transfer
    return value, at


def _read_flow(data: bytes, at: int, count: int, stop: int) -> tuple[Performative, int] | None:
    """Reads all fields but properties."""
    if not 4 <= count <= 10:
        return None
    values: list[object] = []
    for index in range(count):
        code = data[at]
        if index >= 8:
            values.append(_BOOLEANS[code])
            at += 1
        elif code == 0x52:
            values.append(data[at + 1])
            at += 2
        elif code == 0x70:
            values.append(_uint(data, at + 1)[0])
            at += 5
        elif code == 0x43:
            values.append(0)
            at += 1
        elif code == 0x40 and not 1 <= index <= 3:
            values.append(None)
            at += 1
        else:
            return None
    if at != stop:
        return None
    value = _flow(*values, *(None,) * (11 - count))
    value.__class__ = Flow
    return value, at


def _read_disposition(
    data: bytes, at: int, count: int, stop: int
) -> tuple[Performative, int] | None:
    """Reads role, first, last, settled, and the state accepted."""
    if not 2 <= count <= 5:
        return None
    code = data[at]
    if code == 0x41:
        role = Role.RECEIVER
    elif code == 0x42:
        role = Role.SENDER
    else:
        return None
    at += 1
    first = last = settled = state = None
    for index in range(1, min(count, 3)):
        code = data[at]
        number = None
        if code == 0x52:
            number = data[at + 1]
            at += 2
        elif code == 0x70:
            number = _uint(data, at + 1)[0]
            at += 5
        elif code == 0x43:
            number = 0
            at += 1
        elif code == 0x40 and index == 2:
            at += 1
        else:
            return None
        if index == 1:
            first = number
        else:
            last = number
    if count > 3:
        settled = _BOOLEANS[data[at]]
        at += 1
        if count > 4:
            if data[at : at + 4] != _ACCEPTED_OCTETS:
                return None
            state = _ACCEPTED
            at += 4
    if at != stop:
        return None
    value = _disposition(role, first, last, settled, state, None)
    value.__class__ = Disposition
    return value, at


_READERS: dict[bytes, HotReader] = {
    bytes((0x00, 0x53, Transfer.DESCRIPTOR, 0xC0)): _read_transfer,
    bytes((0x00, 0x53, Flow.DESCRIPTOR, 0xC0)): _read_flow,
    bytes((0x00, 0x53, Disposition.DESCRIPTOR, 0xC0)): _read_disposition,
}


def decode_hot(data: bytes, start: int, end: int) -> tuple[Performative, int] | None:
    """Reads a performative that is one of the three in its usual encoding.

    Args:
        data: the octets.
        start: offset of the body.
        end: where the body ends.

    Returns:
        The performative and the offset behind it, or `None`: read it the plain way.
    """
    reader = _READERS.get(data[start : start + 4])
    if reader is None:
        return None
    try:
        stop = start + 5 + data[start + 4]
        return reader(data, start + 6, data[start + 5], stop) if stop <= end else None
    except (IndexError, KeyError, struct.error):
        return None
