"""Short cuts over values for what a busy run mostly does: settled messages of one frame each.

`fast` has the same for octets. Each function does all that the plain path does, or nothing at all
and says so; a test plays both side by side. Whatever is not plain here is left to the plain path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench import serial
from workbench.amqp.composite import draft_of
from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.frame import Frame, quick_frame
from workbench.amqp.performatives import SenderSettleMode, Transfer
from workbench.amqp.receiver import ReceiverLink, delivery_received
from workbench.amqp.sender import FRAME_HEADER_SIZE, LARGEST_FIELDS, SenderLink, tag_of
from workbench.amqp.states import ConnectionState, LinkState, SessionState

if TYPE_CHECKING:
    from workbench.amqp.connection import Connection
    from workbench.amqp.events import Event
    from workbench.amqp.session import Session

SMALL_PAYLOAD = 400
"""A payload up to this leaves room for a transfer's fields within the least max-frame-size."""

# Names of their own: to look a member up in its enumeration takes longer than to compare it.
OPENED, MAPPED, ATTACHED = ConnectionState.OPENED, SessionState.MAPPED, LinkState.ATTACHED
UNSETTLED = SenderSettleMode.UNSETTLED

_ABSENT = (None,) * (len(Transfer.FIELDS) - 5)
_transfer = draft_of(Transfer)


def send_settled(link: SenderLink, payload: bytes) -> bool:
    """As `link.send(payload, settled=True)`, if that is one frame and legal now; False if not."""
    session = link.session
    counters, windows = link.counters, session.counters
    connection, settings = session.connection, session.settings
    if (
        not counters.link_credit
        or not windows.remote_incoming_window
        or link.state is not ATTACHED
        or link.sending is not None
        or link.tags
        or len(payload) + LARGEST_FIELDS + settings.transfer_reserve
        > connection.remote_max_frame_size - FRAME_HEADER_SIZE
        or settings.full_transfers
        or settings.write_more
        or session.state is not MAPPED
        or connection.state is not OPENED
    ):
        return False
    peer, own = link.remote_attach, link.terms
    assert peer is not None
    assert own is not None
    if own.snd_settle_mode is UNSETTLED:
        return False
    if peer.max_message_size and len(payload) > peer.max_message_size:
        return False
    number, delivery_id = link.tag_number, session.next_delivery_id
    # As `note_begun`, written out.
    session.next_delivery_id = serial.add(delivery_id, 1)
    counters.begin_delivery()
    link.tag_number = number + 1
    windows.send_transfer()
    channel = session.channel
    assert channel is not None
    transfer = _transfer(link.handle, delivery_id, tag_of(number), 0, True, *_ABSENT)
    transfer.__class__ = Transfer
    connection.emit_made(quick_frame(channel, transfer, payload), session, link)
    return True


def take_settled(
    connection: Connection, frame: Frame, transfer: Transfer
) -> tuple[list[Event], Session, ReceiverLink] | None:
    """Takes in a settled message that is whole in one frame; None, and nothing done, if it is not.

    Args:
        connection: that receives.
        frame: of a transfer.
        transfer: its performative.
    """
    session = connection.remote_channels.get(frame.channel)
    if (
        session is None
        or connection.state is not OPENED
        or connection.failed
        or session.state is not MAPPED
    ):
        return None
    link = session.remote_handles.get(transfer.handle)
    if (
        type(link) is not ReceiverLink
        or link.state is not ATTACHED
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
        or peer.snd_settle_mode is UNSETTLED
    ):
        return None
    windows.take_transfer()
    counters.take_delivery()
    delivery = IncomingDelivery(link, delivery_id, tag, transfer.message_format, True)
    delivery.frames, delivery.size, delivery.complete = 1, size, True
    delivery.parts.append(payload)
    return [delivery_received(link, delivery)], session, link
