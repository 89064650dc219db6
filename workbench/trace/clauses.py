"""Which clause of a specification explains a row, and what that clause is called.

Numbers and titles are those of the OASIS standard (2012): part 2 is transport, part 3 messaging,
part 5 security.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .schema import AMQP_0_9_1, AMQP_0_10, Row

TITLES: dict[str, str] = {
    "2.2": "Version Negotiation",
    "2.3": "Framing",
    "2.3.1": "Frame Layout",
    "2.4.1": "Opening A Connection",
    "2.4.2": "Pipelined Open",
    "2.4.3": "Closing A Connection",
    "2.4.5": "Idle Timeout Of A Connection",
    "2.4.6": "Connection States",
    "2.5.1": "Establishing A Session",
    "2.5.2": "Ending A Session",
    "2.5.4": "Session Errors",
    "2.5.6": "Session Flow Control",
    "2.6.1": "Naming A Link",
    "2.6.2": "Link Handles",
    "2.6.3": "Establishing Or Resuming A Link",
    "2.6.4": "Detaching And Reattaching A Link",
    "2.6.5": "Link Errors",
    "2.6.6": "Closing A Link",
    "2.6.7": "Flow Control",
    "2.6.8": "Synchronous Get",
    "2.6.9": "Asynchronous Notification",
    "2.6.10": "Stopping A Link",
    "2.6.12": "Transferring A Message",
    "2.6.13": "Resuming Deliveries",
    "2.6.14": "Transferring Large Messages",
    "2.7.1": "Open",
    "2.7.2": "Begin",
    "2.7.3": "Attach",
    "2.7.4": "Flow",
    "2.7.5": "Transfer",
    "2.7.6": "Disposition",
    "2.7.7": "Detach",
    "2.7.8": "End",
    "2.7.9": "Close",
    "3.4": "Delivery State",
    "5.3.2": "SASL Negotiation",
    # Of AMQP 0-9-1, and names of RabbitMQ's extensions to it, as its documentation has them.
    "0-9-1:2.2.4": "The Connection Class",
    "0-9-1:2.2.5": "The Channel Class",
    "0-9-1:2.2.6": "The Exchange Class",
    "0-9-1:2.2.7": "The Queue Class",
    "0-9-1:2.2.8": "The Basic Class",
    "0-9-1:2.2.9": "The Transaction Class",
    "0-9-1:2.3.7": "Error Handling",
    "0-9-1:4.2.2": "Protocol Header",
    "0-9-1:4.2.3": "General Frame Format",
    "0-9-1:4.2.6.1": "The Content Header",
    "0-9-1:4.2.6.2": "The Content Body",
    "0-9-1:4.2.7": "Heartbeat Frames",
    "rabbitmq:confirms": "Publisher Confirms",
    "rabbitmq:blocked": "Blocked Connection Notifications",
    "rabbitmq:nack": "Negative Acknowledgements",
    "rabbitmq:e2e": "Exchange to Exchange Bindings",
    # Classes of AMQP 0-10; a message's header and body are of its class too.
    "0-10:connection": "Controls of Class Connection",
    "0-10:session": "Controls of Class Session",
    "0-10:execution": "Commands of Class Execution",
    "0-10:message": "Commands of Class Message",
    "0-10:exchange": "Commands of Class Exchange",
    "0-10:queue": "Commands of Class Queue",
}

_BY_KIND: dict[str, str] = {
    "protocol-header": "2.2",
    "heartbeat": "2.4.5",
    "open": "2.4.1",
    "begin": "2.5.1",
    "attach": "2.6.3",
    "disposition": "2.6.12",
    "end": "2.5.2",
    "close": "2.4.3",
}


_BY_KIND_091: dict[str, str] = {
    "protocol-header": "0-9-1:4.2.2",
    "content-header": "0-9-1:4.2.6.1",
    "content-body": "0-9-1:4.2.6.2",
    "heartbeat": "0-9-1:4.2.7",
    "undecodable": "0-9-1:4.2.3",
    "connection.blocked": "rabbitmq:blocked",
    "connection.unblocked": "rabbitmq:blocked",
    "channel.close": "0-9-1:2.3.7",
    "basic.nack": "rabbitmq:nack",
    "exchange.bind": "rabbitmq:e2e",
    "exchange.unbind": "rabbitmq:e2e",
}
_BY_CLASS_091: dict[str, str] = {
    "connection": "0-9-1:2.2.4",
    "channel": "0-9-1:2.2.5",
    "exchange": "0-9-1:2.2.6",
    "queue": "0-9-1:2.2.7",
    "basic": "0-9-1:2.2.8",
    "tx": "0-9-1:2.2.9",
    "confirm": "rabbitmq:confirms",
}


def clause_091(kind: str) -> str | None:
    """The clause that explains a frame of AMQP 0-9-1, by its kind."""
    return _BY_KIND_091.get(kind) or _BY_CLASS_091.get(kind.partition(".")[0])


def clause_010(kind: str) -> str | None:
    """The class of AMQP 0-10 that explains a frame, by its kind."""
    owner = "message" if kind in ("header", "body") else kind.partition(".")[0]
    return found if (found := f"0-10:{owner}") in TITLES else None


def title(clause: str | None) -> str | None:
    """The clause's title, or None for a clause that is not in the table (a broker's own rule)."""
    return TITLES.get(clause or "")


def clause_of(row: Row) -> str | None:
    """The clause that explains a frame's row, by what it tells of the frame."""
    if row.protocol == AMQP_0_9_1:
        return clause_091(row.kind or "")
    if row.protocol == AMQP_0_10:
        return clause_010(row.kind or "")
    from_receiver = None if row.link_sender is None else row.from_peer != row.link_sender
    return clause_for(row.kind, row.frame, from_receiver=from_receiver)


def clause_for(
    kind: str | None, frame: Mapping[str, Any] | None, *, from_receiver: bool | None = None
) -> str | None:
    """The clause that explains a frame of AMQP 1.0.

    Args:
        kind: performative, `protocol-header` or `heartbeat`.
        frame: its fields as on the wire.
        from_receiver: whether the link's receiver sent it; None if it concerns no link.
    """
    fields = frame or {}
    if kind is None:
        return None
    if kind.startswith("sasl-"):
        return "5.3.2"
    if kind == "flow":
        return _flow(fields, from_receiver)
    if kind == "transfer":
        return "2.6.14" if fields.get("more") or "delivery_id" not in fields else "2.6.7"
    if kind == "detach":
        if "error" in str(fields.get("extra_json", "")):
            return "2.6.5"
        return "2.6.6" if fields.get("closed") else "2.6.4"
    if kind == "end" and "error" in str(fields.get("extra_json", "")):
        return "2.5.4"
    return _BY_KIND.get(kind)


def _flow(fields: Mapping[str, Any], from_receiver: bool | None) -> str:
    if "handle" not in fields:
        return "2.5.6"
    if fields.get("drain"):
        return "2.6.8"
    if from_receiver and fields.get("link_credit") == 0:
        return "2.6.10"
    return "2.6.7"
