"""Short cuts over values for what a busy run mostly does: settled messages of one frame each.

`fast` has the same for octets. Each function does all that the plain path does, or nothing at all
and says so; a test plays both side by side. Whatever is not plain here is left to the plain path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.frame import Frame, quick_frame
from workbench.amqp.performatives import SenderSettleMode, Transfer
from workbench.amqp.receiver import ReceiverLink, delivery_received
from workbench.amqp.sender import FRAME_HEADER_SIZE, LARGEST_FIELDS, SenderLink, tag_of
from workbench.amqp.states import ConnectionState, LinkState, SessionState

if TYPE_CHECKING:
    from workbench.amqp.connection import Connection
    from workbench.amqp.events import DeliveryReceived
    from workbench.amqp.session import Session

SMALL_PAYLOAD = 400
"""A payload up to this leaves room for a transfer's fields within the least max-frame-size."""

_ABSENT = (None,) * (len(Transfer.FIELDS) - 5)
_transfer = Transfer.from_wire


def send_settled(link: SenderLink, payload: bytes) -> bool:
    """As `link.send(payload, settled=True)`, if that is one frame and legal now; False if not."""
    session = link.session
    counters, windows = link.counters, session.counters
    connection = session.connection
    if (
        not counters.link_credit
        or not windows.remote_incoming_window
        or link.state is not LinkState.ATTACHED
        or link.sending is not None
        or link.tags
        or len(payload) + LARGEST_FIELDS + session.settings.transfer_reserve
        > connection.remote_max_frame_size - FRAME_HEADER_SIZE
        or session.settings.full_transfers
        or session.settings.write_more
        or session.state is not SessionState.MAPPED
        or connection.state is not ConnectionState.OPENED
    ):
        return False
    peer, own = link.remote_attach, link.terms
    assert peer is not None
    assert own is not None
    if own.snd_settle_mode is SenderSettleMode.UNSETTLED:
        return False
    if peer.max_message_size and len(payload) > peer.max_message_size:
        return False
    number, delivery_id = link.tag_number, session.next_delivery_id
    link.note_begun(1, tags=True)
    windows.send_transfer()
    channel = session.channel
    assert channel is not None
    frame = quick_frame(
        channel,
        _transfer([link.handle, delivery_id, tag_of(number), 0, True, *_ABSENT]),
        payload,
    )
    connection.emit_made(frame, session, link)
    return True


def take_settled(
    connection: Connection, frame: Frame, transfer: Transfer
) -> tuple[DeliveryReceived, Session, ReceiverLink] | None:
    """Takes in a settled message that is whole in one frame; None, and nothing done, if it is not.

    Args:
        connection: that receives.
        frame: of a transfer.
        transfer: its performative.
    """
    session = connection.remote_channels.get(frame.channel)
    if (
        session is None
        or connection.state is not ConnectionState.OPENED
        or connection.failed
        or session.state is not SessionState.MAPPED
    ):
        return None
    link = session.remote_handles.get(transfer.handle)
    if (
        type(link) is not ReceiverLink
        or link.state is not LinkState.ATTACHED
        or link.receiving is not None
        or not transfer.settled
    ):
        return None
    windows, counters = session.counters, link.counters
    delivery_id, tag, payload = transfer.delivery_id, transfer.delivery_tag, frame.payload
    size, limit = len(payload), link.max_message_size
    peer = link.remote_attach
    if (
        not counters.link_credit
        or windows.frames_in >= windows.frames_allowed
        or delivery_id is None
        or tag is None
        or transfer.more
        or transfer.aborted
        or transfer.resume
        or transfer.state is not None
        or transfer.rcv_settle_mode is not None
        or size > SMALL_PAYLOAD
        or (limit and size > limit)
        or delivery_id in session.incoming
        or peer is None
        or peer.snd_settle_mode is SenderSettleMode.UNSETTLED
    ):
        return None
    windows.take_transfer()
    counters.take_delivery()
    delivery = IncomingDelivery(link, delivery_id, tag, transfer.message_format, True)
    delivery.frames = 1
    delivery.size = size
    delivery.parts.append(payload)
    delivery.complete = True
    return delivery_received(link, delivery), session, link
