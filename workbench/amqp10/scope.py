"""What a frame concerns, and the counters there: what a tap asks an endpoint for."""

from typing import NamedTuple, TypeAlias

__all__ = ["NOWHERE", "ItemScope", "Ledger"]

Ledger: TypeAlias = dict[str, int | bool]


class ItemScope(NamedTuple):
    """What a frame concerns, and this end's counters right after it.

    Attributes:
        session: ordinal of the session on its connection, from 1, in the order in which this end
            sent or received the first begin.
        link: name of the link.
        link_sender_is_local: whether this end sends the messages of the link.
        attach_no: which attach of that name and direction on the session, from 1.
        link_ledger: `delivery_count, link_credit, available, drain, unsettled`; a receiver knows
            no delivery_count until the sender's attach has come, and then it is left out.
        session_ledger: `next_incoming_id, incoming_window, next_outgoing_id, outgoing_window,
            remote_incoming_window, remote_outgoing_window`; what only the peer's begin can tell
            is left out until it has come.
        in_message: this end sends over the link, and frames of a message that it has begun are
            still to be sent.
    """

    session: int | None = None
    link: str | None = None
    link_sender_is_local: bool | None = None
    attach_no: int | None = None
    link_ledger: Ledger | None = None
    session_ledger: Ledger | None = None
    in_message: bool = False


NOWHERE = ItemScope()
"""Of a frame that concerns neither session nor link."""
