"""Short cuts for what a busy connection mostly does: settled messages of one frame each.

Sending, a batch of messages becomes octets without an object for each frame. Receiving, a run of
such frames is recognised by its first octets and counted at once. A test proves that both yield the
octets, events and counters of the plain path; whatever is not plain here is left to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from workbench import serial
from workbench.amqp.connection import Connection
from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.events import Event
from workbench.amqp.frame import Frame, WireItem, encode_item
from workbench.amqp.hot_writer import encode_disposition_frame, encode_transfer_frame
from workbench.amqp.outcome import Accepted
from workbench.amqp.performatives import Disposition, SenderSettleMode, Transfer
from workbench.amqp.receiver import ReceiverLink, delivery_received
from workbench.amqp.sender import SenderLink, tag_of
from workbench.amqp.states import ConnectionState, LinkState, SessionState

__all__ = ["encode_quickly", "encode_settled_batch", "take_transfers"]

_unpack_head = struct.Struct(">IHHIBB").unpack_from
"""SIZE; DOFF and TYPE; channel; `00 53 14 c0`; size and count of the list."""

_unpack_uint = struct.Struct(">I").unpack_from

HEAD_SIZE = 14
PLAIN_HEADER = 0x0200
TRANSFER_LIST = 0x005314C0
FIELD_COUNT = 5  # handle, delivery-id, delivery-tag, message-format, settled
LONGEST_FIELDS = 64
FORMAT_0_SETTLED = b"\x43\x41"


def encode_quickly(item: WireItem) -> bytes:
    """As `encode_item`, and quicker for a delivery's first frame and for accepting one."""
    if isinstance(item, Frame) and type(item.performative) is Transfer:
        frame = item.performative
        plain = (
            frame.delivery_id is not None
            and frame.delivery_tag is not None
            and frame.rcv_settle_mode is None
            and frame.state is None
            and frame.resume is None
            and frame.aborted is None
            and frame.batchable is None
        )
        if plain:
            return encode_transfer_frame(
                item.channel,
                frame.handle,
                frame.delivery_id,  # type: ignore[arg-type]
                frame.delivery_tag,  # type: ignore[arg-type]
                item.payload,
                message_format=frame.message_format,
                settled=frame.settled,
                more=frame.more,
            )
    elif isinstance(item, Frame) and type(item.performative) is Disposition:
        settling = item.performative
        state = settling.state
        if settling.batchable is None and (state is None or type(state) is Accepted):
            return encode_disposition_frame(
                item.channel,
                settling.role,
                settling.first,
                settling.last,
                settled=settling.settled,
                accepted=state is not None,
            )
    return encode_item(item)


def encode_settled_batch(link: SenderLink, payloads: Sequence[bytes], chunks: list[bytes]) -> int:
    """Makes the frames of settled messages, as far as credit, window and frame size go.

    Args:
        link: over which they go; it may send.
        payloads: encoded messages.
        chunks: to which the frames are appended.

    Returns:
        How many were taken, from the front; counters are up to date.
    """
    session = link.session
    connection = session.connection
    first, number = session.next_delivery_id, link.tag_number
    count = min(
        len(payloads), link.credit, session.counters.remote_incoming_window or 0,
        serial.MODULUS - first,
    )  # fmt: skip
    if link.state is not LinkState.ATTACHED or link.sending is not None or link.tags:
        return 0
    peer = link.remote_attach
    room = connection.remote_max_frame_size - HEAD_SIZE - LONGEST_FIELDS
    if peer is not None and peer.max_message_size:
        room = min(room, peer.max_message_size)
    channel, handle = session.channel, link.handle
    assert channel is not None
    assert handle is not None
    taken = 0
    for taken, payload in enumerate(payloads[:count]):
        if len(payload) > room:
            break
        chunks.append(
            encode_transfer_frame(
                channel, handle, first + taken, tag_of(number + taken), payload, settled=True
            )
        )
    else:
        taken = max(count, 0)
    if taken:
        link.note_begun(taken, tags=True)
        session.counters.send_transfer(taken)
        connection.frames_out += taken
    return taken


def take_transfers(connection: Connection, data: bytes, at: int, events: list[Event]) -> int:
    """Takes in the run of plain transfers at the beginning of `data[at:]`.

    Args:
        connection: that receives.
        data: octets of whole and perhaps incomplete frames.
        at: where a frame begins.
        events: to which theirs are appended.

    Returns:
        Where the first frame begins that is not plain, or not complete.
    """
    end = len(data)
    if connection.state is not ConnectionState.OPENED:
        return at
    limit = connection.settings.max_frame_size
    while end - at > HEAD_SIZE + 1:
        # Which link it is: looked up once for a run of frames.
        _, header, channel, kind, _, _ = _unpack_head(data, at)
        if header != PLAIN_HEADER or kind != TRANSFER_LIST:
            return at
        code = data[at + HEAD_SIZE]
        session = connection.remote_channels.get(channel)
        if session is None or session.state is not SessionState.MAPPED:
            return at
        link = session.remote_handles.get(0 if code == 0x43 else data[at + HEAD_SIZE + 1])
        if code not in (0x43, 0x52) or not _is_plain(link):
            return at
        assert isinstance(link, ReceiverLink)
        counters = session.counters
        budget = min(link.credit, counters.frames_allowed - counters.frames_in)
        begin = at
        at, taken = _take_run(link, data, at, budget, limit, events)
        if taken:
            link.counters.take_delivery(taken)
            counters.take_transfer(taken)
            connection.frames_in += taken
        if at == begin:
            return at
    return at


def _is_plain(link: object) -> bool:
    """Whether a whole settled delivery can be counted on this link without looking further."""
    return (
        isinstance(link, ReceiverLink)
        and link.state is LinkState.ATTACHED
        and link.receiving is None
        and link.snd_settle_mode is not SenderSettleMode.UNSETTLED
    )


def _take_run(
    link: ReceiverLink, data: bytes, at: int, budget: int, limit: int, events: list[Event]
) -> tuple[int, int]:
    """Takes plain transfers of one link; gives where they end, and how many they were."""
    end = len(data)
    taken = 0
    incoming = link.session.incoming
    channel = link.session.remote_channel
    handle = link.remote_handle
    largest = link.max_message_size or limit
    append = events.append
    try:
        while taken < budget:
            size, header, its_channel, kind, list_size, count = _unpack_head(data, at)
            after = at + size
            if (
                after > end
                or size > limit
                or kind != TRANSFER_LIST
                or header != PLAIN_HEADER
                or its_channel != channel
                or count != FIELD_COUNT
            ):
                break
            stop = at + HEAD_SIZE - 1 + list_size
            i = at + HEAD_SIZE
            if data[i] == 0x43:
                its_handle = 0
                i += 1
            elif data[i] == 0x52:
                its_handle = data[i + 1]
                i += 2
            else:
                break
            code = data[i]
            if code == 0x70:
                delivery_id = _unpack_uint(data, i + 1)[0]
                i += 5
            elif code == 0x52:
                delivery_id = data[i + 1]
                i += 2
            elif code == 0x43:
                delivery_id = 0
                i += 1
            else:
                break
            tag_size = data[i + 1]
            i += 2
            tail = i + tag_size
            if (
                data[i - 2] != 0xA0
                or tag_size > 32
                or data[tail:stop] != FORMAT_0_SETTLED
                or its_handle != handle
                or delivery_id in incoming
                or stop > after
                or after - stop > largest
            ):
                break
            delivery = IncomingDelivery(link, delivery_id, data[i:tail], 0, True)
            delivery.parts.append(data[stop:after])
            delivery.size = after - stop
            delivery.frames = 1
            delivery.complete = True
            append(delivery_received(link, delivery))
            taken += 1
            at = after
    except (IndexError, struct.error):
        pass  # an incomplete frame: the plain path waits for the rest
    return at, taken
