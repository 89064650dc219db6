"""The fields of a trace's structs: of a frame, one list per protocol, of details and of a ledger.

Each protocol has a struct of its own, `frame`, `frame_091` and `frame_010`: the union of the scalar
fields of its performatives, methods or commands, with the names of the specification in
snake_case. A field that was absent on the wire is null; defaults are not filled in. What is not
scalar (termini, delivery state, maps, errors, several symbols) is JSON text in `extra_json`.
`details` is made the same way of what rows say that are no frames.

Nothing here imports Arrow or Spark: a type is a word (`int64`, `string`, ...), and whoever needs
another type system maps the words.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
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


FRAME_PROTOCOLS = ("amqp-1.0", "amqp-0-9-1", "amqp-0-10")
"""The protocols that have frames, each a struct of its own."""

EXTRA_JSON = "extra_json"

FRAME_FIELDS: tuple[Field, ...] = (
    Field("channel", "int32", "channel number in the frame header; each direction has its own"),
    # protocol header, 2.2
    Field("protocol_id", "int32", "protocol header: 0 AMQP, 2 TLS, 3 SASL"),
    Field("major", "int32", "protocol header: 1"),
    Field("minor", "int32", "protocol header: 0"),
    Field("revision", "int32", "protocol header: 0"),
    # open
    Field("container_id", "string", "open: name of the container"),
    Field("hostname", "string", "open, sasl-init: host that is wanted"),
    Field("max_frame_size", "int64", "open: largest frame this peer takes", "octets"),
    Field("channel_max", "int32", "open: highest channel number this peer takes"),
    Field("idle_time_out", "int64", "open: longest silence this peer tolerates", "ms"),
    # begin
    Field(
        "remote_channel", "int32", "begin: the channel this begin answers; null starts a session"
    ),
    Field(
        "next_outgoing_id", "int64", "begin, flow: transfer-id of the next transfer frame", "serial"
    ),
    Field("incoming_window", "int64", "begin, flow: transfer frames this end takes now", "frames"),
    Field("outgoing_window", "int64", "begin, flow: transfer frames this end may send", "frames"),
    Field("handle_max", "int64", "begin: highest handle this end takes"),
    # attach
    Field("name", "string", "attach: name of the link"),
    Field(
        "handle", "int64", "attach, flow, transfer, detach: the sending end's number for the link"
    ),
    Field(
        "role", "string", "attach, disposition: `sender` (false on the wire) or `receiver` (true)"
    ),
    Field("snd_settle_mode", "int32", "attach: 0 unsettled, 1 settled, 2 mixed"),
    Field("rcv_settle_mode", "int32", "attach, transfer: 0 first, 1 second"),
    Field("incomplete_unsettled", "bool", "attach: the unsettled map is not complete"),
    Field("initial_delivery_count", "int64", "attach: where a sender starts counting", "serial"),
    Field("max_message_size", "int64", "attach: largest message; null or 0 is no limit", "octets"),
    # flow
    Field("next_incoming_id", "int64", "flow: transfer-id expected next from the peer", "serial"),
    Field(
        "delivery_count", "int64", "flow: the link's delivery-count as this end has it", "serial"
    ),
    Field(
        "link_credit",
        "int64",
        "flow: messages the sender may send after delivery_count",
        "messages",
    ),
    Field(
        "available", "int64", "flow: messages the sender could send if it had credit", "messages"
    ),
    Field("drain", "bool", "flow: use the credit up, or give it back"),
    Field("echo", "bool", "flow: please answer with a flow"),
    # transfer
    Field("delivery_id", "int64", "transfer: number of the delivery on the session", "serial"),
    Field("delivery_tag", "binary", "transfer: the sender's name for the delivery"),
    Field("message_format", "int64", "transfer: 0 for AMQP's own format"),
    Field("settled", "bool", "transfer, disposition: this end has forgotten the delivery"),
    Field("more", "bool", "transfer: the message goes on in the next transfer of this link"),
    Field("resume", "bool", "transfer: resumes a delivery from before the link was re-attached"),
    Field("aborted", "bool", "transfer: drop what came of this delivery"),
    Field("batchable", "bool", "transfer, disposition: no need to answer at once"),
    # disposition
    Field("first", "int64", "disposition: first delivery-id it speaks of", "serial"),
    Field("last", "int64", "disposition: last delivery-id, null means the first alone", "serial"),
    # detach
    Field("closed", "bool", "detach: the link is destroyed, not suspended"),
    # SASL, 5.3.3
    Field("mechanism", "string", "sasl-init: the mechanism chosen"),
    Field(
        "initial_response", "binary", "sasl-init: what the mechanism sends first; may be a secret"
    ),
    Field("challenge", "binary", "sasl-challenge: octets for the mechanism"),
    Field("response", "binary", "sasl-response: octets of the mechanism; may be a secret"),
    Field("code", "int32", "sasl-outcome: 0 ok, 1 auth, 2 sys, 3 sys-perm, 4 sys-temp"),
    Field("additional_data", "binary", "sasl-outcome: octets of the mechanism"),
    Field(
        EXTRA_JSON,
        "string",
        "JSON object of the fields that are not scalar (source, target, state, error, properties,"
        " maps, several symbols) and of numbers above 2^63-1",
    ),
)

FRAME_091_FIELDS: tuple[Field, ...] = (
    Field("channel", "int32", "channel number, the same in both directions"),
    # protocol header, 4.2.2
    Field("protocol_id", "int32", "protocol header: 0"),
    Field("major", "int32", "protocol header: 0"),
    Field("minor", "int32", "protocol header: 9"),
    Field("revision", "int32", "protocol header: 1"),
    # connection
    Field("version_major", "int32", "connection.start: 0"),
    Field("version_minor", "int32", "connection.start: 9"),
    Field("mechanisms", "string", "connection.start: mechanisms that are offered"),
    Field("locales", "string", "connection.start: locales that are offered"),
    Field("mechanism", "string", "connection.start-ok: the mechanism chosen"),
    Field(
        "response", "binary", "connection.start-ok, secure-ok: of the mechanism; may be a secret"
    ),
    Field("challenge", "binary", "connection.secure: octets for the mechanism"),
    Field("locale", "string", "connection.start-ok: the locale chosen"),
    Field("virtual_host", "string", "connection.open: the virtual host"),
    Field("new_secret", "binary", "connection.update-secret: a secret"),
    Field("channel_max", "int32", "connection.tune, tune-ok: highest channel number"),
    Field("frame_max", "int64", "connection.tune, tune-ok: largest frame; 0 is no limit", "octets"),
    Field("heartbeat", "int32", "connection.tune, tune-ok: seconds between heartbeats", "s"),
    Field("reason", "string", "connection.blocked, update-secret: why"),
    Field(
        "reply_code",
        "int32",
        "connection.close, channel.close, basic.return: the error's number; undecodable: the one"
        " that it calls for",
    ),
    Field(
        "reply_text", "string", "connection.close, channel.close, basic.return: the error in words"
    ),
    Field(
        "class_id",
        "int32",
        "connection.close, channel.close, undecodable: class of the method at fault; content"
        " header: class of its method",
    ),
    Field("method_id", "int32", "connection.close, channel.close, undecodable: method at fault"),
    # channel, confirm
    Field("active", "bool", "channel.flow, flow-ok: whether content may be sent"),
    Field("nowait", "bool", "no answer is wanted"),
    # queue, exchange
    Field("queue", "string", "queue.declare, basic.consume, basic.get: name of the queue"),
    Field("type", "string", "exchange.declare: type of the exchange"),
    Field("internal", "bool", "exchange.declare: clients cannot publish to it"),
    Field("source", "string", "exchange.bind, unbind: the exchange that messages come from"),
    Field("destination", "string", "exchange.bind, unbind: the exchange that they go to"),
    Field("if_unused", "bool", "queue.delete, exchange.delete: only if nobody uses it"),
    Field("if_empty", "bool", "queue.delete: only if no messages are in it"),
    Field("passive", "bool", "queue.declare, exchange.declare: only see whether it is there"),
    Field("durable", "bool", "queue.declare, exchange.declare: it outlives the broker"),
    Field(
        "exclusive", "bool", "queue.declare, basic.consume: for this connection or consumer alone"
    ),
    Field("auto_delete", "bool", "queue.declare, exchange.declare: it goes with its last user"),
    Field("message_count", "int64", "queue.declare-ok, basic.get-ok: messages ready", "messages"),
    Field("consumer_count", "int64", "queue.declare-ok: consumers of the queue"),
    # basic
    Field("prefetch_size", "int64", "basic.qos: octets ahead of acknowledgement", "octets"),
    Field("prefetch_count", "int32", "basic.qos: deliveries ahead of acknowledgement", "messages"),
    Field("global", "bool", "basic.qos: for the channel as a whole, in RabbitMQ's reading"),
    Field(
        "consumer_tag", "string", "basic.consume, consume-ok, cancel, deliver: the consumer's name"
    ),
    Field("no_local", "bool", "basic.consume: nothing that this connection published"),
    Field("no_ack", "bool", "basic.consume, basic.get: deliveries count as acknowledged when sent"),
    Field("exchange", "string", "basic.publish, deliver, return, get-ok: name of the exchange"),
    Field("routing_key", "string", "basic.publish, deliver, return, get-ok: the routing key"),
    Field("mandatory", "bool", "basic.publish: return it if no queue takes it"),
    Field("immediate", "bool", "basic.publish: return it if no consumer takes it now"),
    Field(
        "delivery_tag", "int64", "basic.deliver, get-ok, ack, nack, reject: the delivery's number"
    ),
    Field("redelivered", "bool", "basic.deliver, get-ok: it may have been delivered before"),
    Field("multiple", "bool", "basic.ack, nack: all up to the delivery-tag"),
    Field("requeue", "bool", "basic.reject, nack, recover: back into the queue"),
    # content header
    Field("body_size", "int64", "content header: size of the message's body", "octets"),
    Field(
        EXTRA_JSON, "string", "JSON object of the fields that are not scalar (tables, properties)"
    ),
)
FRAME_010_FIELDS: tuple[Field, ...] = (
    Field("channel", "int32", "channel number"),
    Field("track", "int32", "frame header: 0 control, 1 command"),
    Field("segment_type", "int32", "frame header: 0 control, 1 command, 2 header, 3 body"),
    Field("first_segment", "bool", "frame header: of the first segment of its command"),
    Field("last_segment", "bool", "frame header: of the last segment of its command"),
    Field("first_frame", "bool", "frame header: the first frame of its segment"),
    Field("last_frame", "bool", "frame header: the last frame of its segment"),
    Field("sync", "bool", "command header: tell at once when it is complete"),
    # session
    Field("name", "string", "session.attach, attached, detach, detached: name of the session"),
    Field("force", "bool", "session.attach: take it over from another connection"),
    Field("code", "int32", "session.detached, message.reject: the reason's number"),
    Field(
        "command_id",
        "int64",
        "session.command-point, execution.result, exception: a command's number",
        "serial",
    ),
    Field("command_offset", "int64", "session.command-point: octets into that command", "octets"),
    Field("timely_reply", "bool", "session.completed: answer with known-completed soon"),
    Field("expected", "bool", "session.flush: answer with expected"),
    Field("confirmed", "bool", "session.flush: answer with confirmed"),
    Field("completed", "bool", "session.flush: answer with completed"),
    Field("error_code", "int32", "execution.exception: the error's number"),
    Field("description", "string", "execution.exception: the error in words"),
    # message
    Field(
        "destination", "string", "message.transfer, subscribe, flow, flush, stop, cancel: to whom"
    ),
    Field("accept_mode", "int32", "message.transfer, subscribe: 0 explicit, 1 none"),
    Field("acquire_mode", "int32", "message.transfer, subscribe: 0 pre-acquired, 1 not-acquired"),
    Field("queue", "string", "message.subscribe: name of the queue"),
    Field("exclusive", "bool", "message.subscribe: no other subscriber"),
    Field("flow_mode", "int32", "message.set-flow-mode: 0 credit, 1 window"),
    Field("unit", "int32", "message.flow: 0 messages, 1 octets"),
    Field("value", "int64", "message.flow: credit that is added; 4294967295 is no limit"),
    Field("set_redelivered", "bool", "message.release: mark the messages as redelivered"),
    Field("text", "string", "message.reject: the reason in words"),
    Field(
        EXTRA_JSON,
        "string",
        "JSON object of the fields that are not scalar (ranges of commands, headers, maps)",
    ),
)

DETAIL_FIELDS: tuple[Field, ...] = (
    Field("from_peer", "string", "gap, error: who sent the octets, `client` or `broker`"),
    Field("offset", "int64", "gap, error: where in that direction's stream it begins", "octets"),
    Field("octets", "int64", "gap, error, block, unblock: how many", "octets"),
    Field("text", "string", "gap, error: what is wrong, in words"),
    Field("message", "int64", "confirm: number of the message, in order of publishing"),
    Field("count", "int64", "how many messages, entries or frames"),
    Field("credit", "int64", "grant: credit that is given", "messages"),
    Field("pending", "int64", "block, unblock: commands that wait for a majority"),
    Field("frames", "int64", "block, unblock: frames that wait for the transport", "frames"),
    Field("frame_id", "int64", "hold, release: which frame"),
    Field("direction", "string", "hold, release, latency: `c2b` from the client, `b2c` to it"),
    Field("latency_us", "int64", "latency: of the wire or the way from now on", "us"),
    Field("breakpoint", "string", "hold: the condition that came true"),
    Field("to", "string", "cut, heal, latency, drop: the other node, or the exchange it goes to"),
    Field("reason", "string", "drop, gone: why"),
    Field("why", "string", "no majority, refused: why"),
    Field("index", "int64", "commit, apply: the log up to there"),
    Field("first", "int64", "append, replicate: index of the first entry"),
    Field("last", "int64", "append, replicate: index of the last entry"),
    Field("term", "int64", "the replica's term"),
    Field("leader", "string", "whom the replica follows; empty if nobody"),
    Field("entries", "int64", "append, fsync of a write-ahead log: entries of the batch"),
    Field("batch", "int64", "append, fsync of a write-ahead log: number of the batch"),
    Field("lost", "int64", "crash: entries that no fsync had made safe"),
    Field("syncing", "int64", "crash: entries of which the fsync was under way"),
    Field("waiting", "int64", "crash: entries that waited for the next fsync"),
    Field("fsync_us", "int64", "note `fsync-time`: what an fsync takes from now on", "us"),
    Field(EXTRA_JSON, "string", "JSON object of all other details, such as an action's arguments"),
)

# The groups of a ledger.
LINK_FIELDS: tuple[Field, ...] = (
    Field("delivery_count", "int64", "this end's delivery-count of the link", "serial"),
    Field("link_credit", "int64", "this end's link-credit", "messages"),
    Field("available", "int64", "messages at the sender, as this end knows it", "messages"),
    Field("drain", "bool", "drain mode, as this end knows it"),
    Field("unsettled", "int64", "deliveries of the link that this end has not settled", "messages"),
    Field("unconfirmed", "int64", "deliveries that a queue has not confirmed yet", "messages"),
)
SESSION_FIELDS: tuple[Field, ...] = (
    Field("next_incoming_id", "int64", "transfer-id this end expects next", "serial"),
    Field("incoming_window", "int64", "transfer frames this end still takes", "frames"),
    Field("next_outgoing_id", "int64", "transfer-id of the frame this end sends next", "serial"),
    Field("outgoing_window", "int64", "transfer frames this end still may send", "frames"),
    Field("remote_incoming_window", "int64", "what the peer still takes, as known here", "frames"),
    Field("remote_outgoing_window", "int64", "what the peer may send, as known here", "frames"),
)
PREFETCH_FIELDS: tuple[Field, ...] = (
    Field("prefetch_count", "int64", "0-9-1: deliveries ahead of acknowledgement; 0 is no limit"),
    Field("unacknowledged", "int64", "0-9-1: deliveries that are not acknowledged", "messages"),
)
SHARED_FIELDS: tuple[Field, ...] = (
    Field(
        "shared_room",
        "int64",
        "0-9-1: deliveries left by a limit that all consumers of the channel share; null: none is",
        "messages",
    ),
)
CONFIRM_FIELDS: tuple[Field, ...] = (
    Field(
        "published", "int64", "0-9-1: messages published on a channel in confirm mode", "messages"
    ),
    Field("confirmed", "int64", "0-9-1: those that the broker confirmed or refused", "messages"),
)
DESTINATION_FIELDS: tuple[Field, ...] = (
    Field("credit_messages", "int64", "0-10: credit left; 4294967295 is no limit", "messages"),
    Field("credit_octets", "int64", "0-10: credit left; 4294967295 is no limit", "octets"),
)
COMMAND_FIELDS: tuple[Field, ...] = (
    Field("incomplete_commands", "int64", "0-10: commands sent that are not complete at the peer"),
    Field("waiting_transfers", "int64", "0-10: messages that a producer has to send", "messages"),
    Field("transfer_window", "int64", "0-10: incomplete transfers that a producer allows itself"),
    Field(
        "incomplete_transfers",
        "int64",
        "0-10: transfers that a producer's window counts; it looks when it asks what is complete",
    ),
)
HOP_FIELDS: tuple[Field, ...] = (
    Field("hop_credit", "int64", "credit_flow: messages this actor may still send on", "messages"),
)
ACTOR_FIELDS: tuple[Field, ...] = (
    Field("queue_ready", "int64", "messages in the queue that nobody has got", "messages"),
    Field("queue_unsettled", "int64", "messages delivered and not yet settled", "messages"),
    Field("mailbox", "int64", "messages in the actor's mailbox", "messages"),
)
