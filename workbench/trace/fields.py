"""The fields of a frame as a trace keeps them, one list per protocol.

`frame` is a fixed struct: the union of the scalar fields of AMQP 1.0's performatives, with the
names of the specification in snake_case. A field that was absent on the wire is null; defaults are
not filled in. What is not scalar (termini, delivery state, maps, errors, several symbols) is JSON
text in `extra_json`.

Nothing here imports Arrow or Spark: a type is a word (`int64`, `string`, ...), and whoever needs
another type system maps the words.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One column, or one field of a struct column.

    Attributes:
        name: snake_case.
        type: `string`, `int64`, `int32`, `bool`, `binary`, `list<string>` or `struct`.
        doc: what it means.
        unit: unit of a number, or empty.
        nullable: False if every row has it.
        fields: the fields of a struct.
    """

    name: str
    type: str
    doc: str
    unit: str = ""
    nullable: bool = True
    fields: tuple[Field, ...] = ()


def _f(name: str, type_: str, doc: str, unit: str = "") -> Field:
    return Field(name=name, type=type_, doc=doc, unit=unit)


EXTRA_JSON = "extra_json"

FRAME_FIELDS: tuple[Field, ...] = (
    _f("channel", "int32", "channel number in the frame header; each direction has its own"),
    # protocol header, 2.2
    _f("protocol_id", "int32", "protocol header: 0 AMQP, 2 TLS, 3 SASL"),
    _f("major", "int32", "protocol header: 1"),
    _f("minor", "int32", "protocol header: 0"),
    _f("revision", "int32", "protocol header: 0"),
    # open
    _f("container_id", "string", "open: name of the container"),
    _f("hostname", "string", "open, sasl-init: host that is wanted"),
    _f("max_frame_size", "int64", "open: largest frame this peer takes", "octets"),
    _f("channel_max", "int32", "open: highest channel number this peer takes"),
    _f("idle_time_out", "int64", "open: longest silence this peer tolerates", "ms"),
    # begin
    _f("remote_channel", "int32", "begin: the channel this begin answers; null starts a session"),
    _f(
        "next_outgoing_id", "int64", "begin, flow: transfer-id of the next transfer frame", "serial"
    ),
    _f("incoming_window", "int64", "begin, flow: transfer frames this end takes now", "frames"),
    _f("outgoing_window", "int64", "begin, flow: transfer frames this end may send", "frames"),
    _f("handle_max", "int64", "begin: highest handle this end takes"),
    # attach
    _f("name", "string", "attach: name of the link"),
    _f("handle", "int64", "attach, flow, transfer, detach: the sending end's number for the link"),
    _f("role", "string", "attach, disposition: `sender` (false on the wire) or `receiver` (true)"),
    _f("snd_settle_mode", "int32", "attach: 0 unsettled, 1 settled, 2 mixed"),
    _f("rcv_settle_mode", "int32", "attach, transfer: 0 first, 1 second"),
    _f("incomplete_unsettled", "bool", "attach: the unsettled map is not complete"),
    _f("initial_delivery_count", "int64", "attach: where a sender starts counting", "serial"),
    _f("max_message_size", "int64", "attach: largest message; null or 0 is no limit", "octets"),
    # flow
    _f("next_incoming_id", "int64", "flow: transfer-id expected next from the peer", "serial"),
    _f("delivery_count", "int64", "flow: the link's delivery-count as this end has it", "serial"),
    _f(
        "link_credit",
        "int64",
        "flow: messages the sender may send after delivery_count",
        "messages",
    ),
    _f("available", "int64", "flow: messages the sender could send if it had credit", "messages"),
    _f("drain", "bool", "flow: use the credit up, or give it back"),
    _f("echo", "bool", "flow: please answer with a flow"),
    # transfer
    _f("delivery_id", "int64", "transfer: number of the delivery on the session", "serial"),
    _f("delivery_tag", "binary", "transfer: the sender's name for the delivery"),
    _f("message_format", "int64", "transfer: 0 for AMQP's own format"),
    _f("settled", "bool", "transfer, disposition: this end has forgotten the delivery"),
    _f("more", "bool", "transfer: the message goes on in the next transfer of this link"),
    _f("resume", "bool", "transfer: resumes a delivery from before the link was re-attached"),
    _f("aborted", "bool", "transfer: drop what came of this delivery"),
    _f("batchable", "bool", "transfer, disposition: no need to answer at once"),
    # disposition
    _f("first", "int64", "disposition: first delivery-id it speaks of", "serial"),
    _f("last", "int64", "disposition: last delivery-id, null means the first alone", "serial"),
    # detach
    _f("closed", "bool", "detach: the link is destroyed, not suspended"),
    # SASL, 5.3.3
    _f("mechanism", "string", "sasl-init: the mechanism chosen"),
    _f("initial_response", "binary", "sasl-init: what the mechanism sends first; may be a secret"),
    _f("challenge", "binary", "sasl-challenge: octets for the mechanism"),
    _f("response", "binary", "sasl-response: octets of the mechanism; may be a secret"),
    _f("code", "int32", "sasl-outcome: 0 ok, 1 auth, 2 sys, 3 sys-perm, 4 sys-temp"),
    _f("additional_data", "binary", "sasl-outcome: octets of the mechanism"),
    _f(
        EXTRA_JSON,
        "string",
        "JSON object of the fields that are not scalar (source, target, state, error, properties,"
        " maps, several symbols) and of numbers above 2^63-1; on an internal row its details",
    ),
)

# The other two protocols have columns of their own, so that files of today stay readable when
# their fields come.
FRAME_091_FIELDS: tuple[Field, ...] = (
    _f("channel", "int32", "channel number"),
    _f(EXTRA_JSON, "string", "JSON object of the method's arguments"),
)
FRAME_010_FIELDS: tuple[Field, ...] = (
    _f("channel", "int32", "channel number"),
    _f(EXTRA_JSON, "string", "JSON object of the command's arguments"),
)

# The link group, the session group and the actor group of a ledger.
LINK_FIELDS: tuple[Field, ...] = (
    _f("delivery_count", "int64", "this end's delivery-count of the link", "serial"),
    _f("link_credit", "int64", "this end's link-credit", "messages"),
    _f("available", "int64", "messages at the sender, as this end knows it", "messages"),
    _f("drain", "bool", "drain mode, as this end knows it"),
    _f("unsettled", "int64", "deliveries of the link that this end has not settled", "messages"),
    _f("unconfirmed", "int64", "deliveries that a queue has not confirmed yet", "messages"),
)
SESSION_FIELDS: tuple[Field, ...] = (
    _f("next_incoming_id", "int64", "transfer-id this end expects next", "serial"),
    _f("incoming_window", "int64", "transfer frames this end still takes", "frames"),
    _f("next_outgoing_id", "int64", "transfer-id of the frame this end sends next", "serial"),
    _f("outgoing_window", "int64", "transfer frames this end still may send", "frames"),
    _f("remote_incoming_window", "int64", "what the peer still takes, as known here", "frames"),
    _f("remote_outgoing_window", "int64", "what the peer may send, as known here", "frames"),
)
ACTOR_FIELDS: tuple[Field, ...] = (
    _f("queue_ready", "int64", "messages in the queue that nobody has got", "messages"),
    _f("queue_unsettled", "int64", "messages delivered and not yet settled", "messages"),
    _f("mailbox", "int64", "messages in the actor's mailbox", "messages"),
)
