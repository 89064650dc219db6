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


_f = Field

FRAME_PROTOCOLS = ("amqp-1.0", "amqp-0-9-1", "amqp-0-10")
"""The protocols that have frames, each a struct of its own."""

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
        " maps, several symbols) and of numbers above 2^63-1",
    ),
)

FRAME_091_FIELDS: tuple[Field, ...] = (
    _f("channel", "int32", "channel number, the same in both directions"),
    # protocol header, 4.2.2
    _f("protocol_id", "int32", "protocol header: 0"),
    _f("major", "int32", "protocol header: 0"),
    _f("minor", "int32", "protocol header: 9"),
    _f("revision", "int32", "protocol header: 1"),
    # connection
    _f("version_major", "int32", "connection.start: 0"),
    _f("version_minor", "int32", "connection.start: 9"),
    _f("mechanisms", "string", "connection.start: mechanisms that are offered"),
    _f("locales", "string", "connection.start: locales that are offered"),
    _f("mechanism", "string", "connection.start-ok: the mechanism chosen"),
    _f("response", "binary", "connection.start-ok, secure-ok: of the mechanism; may be a secret"),
    _f("challenge", "binary", "connection.secure: octets for the mechanism"),
    _f("locale", "string", "connection.start-ok: the locale chosen"),
    _f("virtual_host", "string", "connection.open: the virtual host"),
    _f("new_secret", "binary", "connection.update-secret: a secret"),
    _f("channel_max", "int32", "connection.tune, tune-ok: highest channel number"),
    _f("frame_max", "int64", "connection.tune, tune-ok: largest frame; 0 is no limit", "octets"),
    _f("heartbeat", "int32", "connection.tune, tune-ok: seconds between heartbeats", "s"),
    _f("reason", "string", "connection.blocked, update-secret: why"),
    _f(
        "reply_code",
        "int32",
        "connection.close, channel.close, basic.return: the error's number; undecodable: the one"
        " that it calls for",
    ),
    _f("reply_text", "string", "connection.close, channel.close, basic.return: the error in words"),
    _f(
        "class_id",
        "int32",
        "connection.close, channel.close, undecodable: class of the method at fault; content"
        " header: class of its method",
    ),
    _f("method_id", "int32", "connection.close, channel.close, undecodable: method at fault"),
    # channel, confirm
    _f("active", "bool", "channel.flow, flow-ok: whether content may be sent"),
    _f("nowait", "bool", "no answer is wanted"),
    # queue, exchange
    _f("queue", "string", "queue.declare, basic.consume, basic.get: name of the queue"),
    _f("type", "string", "exchange.declare: type of the exchange"),
    _f("internal", "bool", "exchange.declare: clients cannot publish to it"),
    _f("source", "string", "exchange.bind, unbind: the exchange that messages come from"),
    _f("destination", "string", "exchange.bind, unbind: the exchange that they go to"),
    _f("if_unused", "bool", "queue.delete, exchange.delete: only if nobody uses it"),
    _f("if_empty", "bool", "queue.delete: only if no messages are in it"),
    _f("passive", "bool", "queue.declare, exchange.declare: only see whether it is there"),
    _f("durable", "bool", "queue.declare, exchange.declare: it outlives the broker"),
    _f("exclusive", "bool", "queue.declare, basic.consume: for this connection or consumer alone"),
    _f("auto_delete", "bool", "queue.declare, exchange.declare: it goes with its last user"),
    _f("message_count", "int64", "queue.declare-ok, basic.get-ok: messages ready", "messages"),
    _f("consumer_count", "int64", "queue.declare-ok: consumers of the queue"),
    # basic
    _f("prefetch_size", "int64", "basic.qos: octets ahead of acknowledgement", "octets"),
    _f("prefetch_count", "int32", "basic.qos: deliveries ahead of acknowledgement", "messages"),
    _f("global", "bool", "basic.qos: for the channel as a whole, in RabbitMQ's reading"),
    _f("consumer_tag", "string", "basic.consume, consume-ok, cancel, deliver: the consumer's name"),
    _f("no_local", "bool", "basic.consume: nothing that this connection published"),
    _f("no_ack", "bool", "basic.consume, basic.get: deliveries count as acknowledged when sent"),
    _f("exchange", "string", "basic.publish, deliver, return, get-ok: name of the exchange"),
    _f("routing_key", "string", "basic.publish, deliver, return, get-ok: the routing key"),
    _f("mandatory", "bool", "basic.publish: return it if no queue takes it"),
    _f("immediate", "bool", "basic.publish: return it if no consumer takes it now"),
    _f("delivery_tag", "int64", "basic.deliver, get-ok, ack, nack, reject: the delivery's number"),
    _f("redelivered", "bool", "basic.deliver, get-ok: it may have been delivered before"),
    _f("multiple", "bool", "basic.ack, nack: all up to the delivery-tag"),
    _f("requeue", "bool", "basic.reject, nack, recover: back into the queue"),
    # content header
    _f("body_size", "int64", "content header: size of the message's body", "octets"),
    _f(EXTRA_JSON, "string", "JSON object of the fields that are not scalar (tables, properties)"),
)
FRAME_010_FIELDS: tuple[Field, ...] = (
    _f("channel", "int32", "channel number"),
    _f("track", "int32", "frame header: 0 control, 1 command"),
    _f("segment_type", "int32", "frame header: 0 control, 1 command, 2 header, 3 body"),
    _f("first_segment", "bool", "frame header: of the first segment of its command"),
    _f("last_segment", "bool", "frame header: of the last segment of its command"),
    _f("first_frame", "bool", "frame header: the first frame of its segment"),
    _f("last_frame", "bool", "frame header: the last frame of its segment"),
    _f("sync", "bool", "command header: tell at once when it is complete"),
    # session
    _f("name", "string", "session.attach, attached, detach, detached: name of the session"),
    _f("force", "bool", "session.attach: take it over from another connection"),
    _f("code", "int32", "session.detached, message.reject: the reason's number"),
    _f(
        "command_id",
        "int64",
        "session.command-point, execution.result, exception: a command's number",
        "serial",
    ),
    _f("command_offset", "int64", "session.command-point: octets into that command", "octets"),
    _f("timely_reply", "bool", "session.completed: answer with known-completed soon"),
    _f("expected", "bool", "session.flush: answer with expected"),
    _f("confirmed", "bool", "session.flush: answer with confirmed"),
    _f("completed", "bool", "session.flush: answer with completed"),
    _f("error_code", "int32", "execution.exception: the error's number"),
    _f("description", "string", "execution.exception: the error in words"),
    # message
    _f("destination", "string", "message.transfer, subscribe, flow, flush, stop, cancel: to whom"),
    _f("accept_mode", "int32", "message.transfer, subscribe: 0 explicit, 1 none"),
    _f("acquire_mode", "int32", "message.transfer, subscribe: 0 pre-acquired, 1 not-acquired"),
    _f("queue", "string", "message.subscribe: name of the queue"),
    _f("exclusive", "bool", "message.subscribe: no other subscriber"),
    _f("flow_mode", "int32", "message.set-flow-mode: 0 credit, 1 window"),
    _f("unit", "int32", "message.flow: 0 messages, 1 octets"),
    _f("value", "int64", "message.flow: credit that is added; 4294967295 is no limit"),
    _f("set_redelivered", "bool", "message.release: mark the messages as redelivered"),
    _f("text", "string", "message.reject: the reason in words"),
    _f(
        EXTRA_JSON,
        "string",
        "JSON object of the fields that are not scalar (ranges of commands, headers, maps)",
    ),
)

DETAIL_FIELDS: tuple[Field, ...] = (
    _f("from_peer", "string", "gap, error: who sent the octets, `client` or `broker`"),
    _f("offset", "int64", "gap, error: where in that direction's stream it begins", "octets"),
    _f("octets", "int64", "gap, error, block, unblock: how many", "octets"),
    _f("text", "string", "gap, error: what is wrong, in words"),
    _f("message", "int64", "confirm: number of the message, in order of publishing"),
    _f("count", "int64", "how many messages, entries or frames"),
    _f("credit", "int64", "grant: credit that is given", "messages"),
    _f("pending", "int64", "block, unblock: commands that wait for a majority"),
    _f("frames", "int64", "block, unblock: frames that wait for the transport", "frames"),
    _f("frame_id", "int64", "hold, release: which frame"),
    _f("direction", "string", "hold, release, latency: `c2b` from the client, `b2c` to it"),
    _f("latency_us", "int64", "latency: of the wire or the way from now on", "us"),
    _f("breakpoint", "string", "hold: the condition that came true"),
    _f("to", "string", "cut, heal, latency, drop: the other node, or the exchange it goes to"),
    _f("reason", "string", "drop, gone: why"),
    _f("why", "string", "no majority, refused: why"),
    _f("index", "int64", "commit, apply: the log up to there"),
    _f("first", "int64", "append, replicate: index of the first entry"),
    _f("last", "int64", "append, replicate: index of the last entry"),
    _f("term", "int64", "the replica's term"),
    _f("leader", "string", "whom the replica follows; empty if nobody"),
    _f("entries", "int64", "append, fsync of a write-ahead log: entries of the batch"),
    _f("batch", "int64", "append, fsync of a write-ahead log: number of the batch"),
    _f("lost", "int64", "crash: entries that no fsync had made safe"),
    _f("syncing", "int64", "crash: entries of which the fsync was under way"),
    _f("waiting", "int64", "crash: entries that waited for the next fsync"),
    _f("fsync_us", "int64", "note `fsync-time`: what an fsync takes from now on", "us"),
    _f(EXTRA_JSON, "string", "JSON object of all other details, such as an action's arguments"),
)

# The groups of a ledger.
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
PREFETCH_FIELDS: tuple[Field, ...] = (
    _f("prefetch_count", "int64", "0-9-1: deliveries ahead of acknowledgement; 0 is no limit"),
    _f("unacknowledged", "int64", "0-9-1: deliveries that are not acknowledged", "messages"),
)
CONFIRM_FIELDS: tuple[Field, ...] = (
    _f("published", "int64", "0-9-1: messages published on a channel in confirm mode", "messages"),
    _f("confirmed", "int64", "0-9-1: those that the broker confirmed or refused", "messages"),
)
DESTINATION_FIELDS: tuple[Field, ...] = (
    _f("credit_messages", "int64", "0-10: credit left; 4294967295 is no limit", "messages"),
    _f("credit_octets", "int64", "0-10: credit left; 4294967295 is no limit", "octets"),
)
COMMAND_FIELDS: tuple[Field, ...] = (
    _f("incomplete_commands", "int64", "0-10: commands sent that are not complete at the peer"),
    _f("waiting_transfers", "int64", "0-10: messages that a producer has to send", "messages"),
    _f("transfer_window", "int64", "0-10: incomplete transfers that a producer allows itself"),
    _f(
        "incomplete_transfers",
        "int64",
        "0-10: transfers that a producer's window counts; it looks when it asks what is complete",
    ),
)
HOP_FIELDS: tuple[Field, ...] = (
    _f("hop_credit", "int64", "credit_flow: messages this actor may still send on", "messages"),
)
ACTOR_FIELDS: tuple[Field, ...] = (
    _f("queue_ready", "int64", "messages in the queue that nobody has got", "messages"),
    _f("queue_unsettled", "int64", "messages delivered and not yet settled", "messages"),
    _f("mailbox", "int64", "messages in the actor's mailbox", "messages"),
)
