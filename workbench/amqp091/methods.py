"""The methods of AMQP 0-9-1, and the properties of a message [1.8; RabbitMQ's extensions].

A method is a frozen struct whose fields stand in the order of the wire, with the specification's
names in snake_case (`nowait` for no-wait, `global_`), and with the values that are usually sent.
Reserved fields are kept as they were: `ticket`, `out_of_band`, `known_hosts` and the like. What is
sent is read from **pamqp**'s tables (`codec`): numbers of the methods, types of their arguments.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct

Table: TypeAlias = Mapping[str, Any]
"""A field table: names and values, in the order of the wire; see `values` for their types."""

NO_TABLE: Table = MappingProxyType({})


class Method(Struct, frozen=True, gc=False, kw_only=True):
    """Base of the methods.

    Attributes:
        NAME: as the specification has it, such as `queue.declare-ok`.
        INDEX: class-id in the upper 16 bits, method-id in the lower 16.
    """

    NAME: ClassVar[str]
    INDEX: ClassVar[int]

    @property
    def numbers(self) -> tuple[int, int]:
        """Class-id and method-id."""
        return self.INDEX >> 16, self.INDEX & 0xFFFF


class Properties(Struct, frozen=True, gc=False, kw_only=True):
    """Properties of a message [1.8.3]; None: not there.

    Attributes:
        delivery_mode: 1 transient, 2 persistent.
        expiration: time to live in milliseconds, as text.
        timestamp: in seconds since 1970.
    """

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Table | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


NO_PROPERTIES = Properties()


class ConnectionStart(Method, frozen=True, gc=False, kw_only=True):
    """The server begins: its version and properties; mechanisms and locales as lists of words."""

    NAME = "connection.start"
    INDEX = 0x000A000A
    version_major: int = 0
    version_minor: int = 9
    server_properties: Table = NO_TABLE
    mechanisms: bytes = b"PLAIN AMQPLAIN"
    locales: bytes = b"en_US"


class ConnectionStartOk(Method, frozen=True, gc=False, kw_only=True):
    """The client answers with its properties and the first response of a mechanism."""

    NAME = "connection.start-ok"
    INDEX = 0x000A000B
    client_properties: Table = NO_TABLE
    mechanism: str = "PLAIN"
    response: bytes = b""
    locale: str = "en_US"


class ConnectionSecure(Method, frozen=True, gc=False, kw_only=True):
    """A challenge of a mechanism that needs more rounds; PLAIN, AMQPLAIN, ANONYMOUS send none."""

    NAME = "connection.secure"
    INDEX = 0x000A0014
    challenge: bytes = b""


class ConnectionSecureOk(Method, frozen=True, gc=False, kw_only=True):
    """The answer to a challenge."""

    NAME = "connection.secure-ok"
    INDEX = 0x000A0015
    response: bytes = b""


class ConnectionTune(Method, frozen=True, gc=False, kw_only=True):
    """The server proposes limits; 0 is no limit, or no heartbeats.

    Attributes:
        channel_max: how many channels.
        frame_max: largest frame, in octets.
        heartbeat: in seconds.
    """

    NAME = "connection.tune"
    INDEX = 0x000A001E
    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionTuneOk(Method, frozen=True, gc=False, kw_only=True):
    """The limits that hold from here on; the client may only lower what was proposed."""

    NAME = "connection.tune-ok"
    INDEX = 0x000A001F
    channel_max: int = 0
    frame_max: int = 0
    heartbeat: int = 0


class ConnectionOpen(Method, frozen=True, gc=False, kw_only=True):
    """The client opens a virtual host."""

    NAME = "connection.open"
    INDEX = 0x000A0028
    virtual_host: str = "/"
    capabilities: str = ""
    insist: bool = False


class ConnectionOpenOk(Method, frozen=True, gc=False, kw_only=True):
    """The connection is open."""

    NAME = "connection.open-ok"
    INDEX = 0x000A0029
    known_hosts: str = ""


class ConnectionClose(Method, frozen=True, gc=False, kw_only=True):
    """Either end closes the connection.

    Attributes:
        reply_code: why; 200 without an error.
        reply_text: why, in words.
        class_id: of the method at fault, 0 if none was.
        method_id: of the method at fault, 0 if none was.
    """

    NAME = "connection.close"
    INDEX = 0x000A0032
    reply_code: int = 200
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ConnectionCloseOk(Method, frozen=True, gc=False, kw_only=True):
    """The last frame of a connection."""

    NAME = "connection.close-ok"
    INDEX = 0x000A0033


class ConnectionBlocked(Method, frozen=True, gc=False, kw_only=True):
    """The broker takes no more messages: RabbitMQ's extension, for a client that can hear it."""

    NAME = "connection.blocked"
    INDEX = 0x000A003C
    reason: str = ""


class ConnectionUnblocked(Method, frozen=True, gc=False, kw_only=True):
    """It takes messages again."""

    NAME = "connection.unblocked"
    INDEX = 0x000A003D


class ConnectionUpdateSecret(Method, frozen=True, gc=False, kw_only=True):
    """A client's new credentials: RabbitMQ's extension."""

    NAME = "connection.update-secret"
    INDEX = 0x000A0046
    new_secret: bytes = b""
    reason: str = ""


class ConnectionUpdateSecretOk(Method, frozen=True, gc=False, kw_only=True):
    """The new credentials hold."""

    NAME = "connection.update-secret-ok"
    INDEX = 0x000A0047


class ChannelOpen(Method, frozen=True, gc=False, kw_only=True):
    """The client opens a channel."""

    NAME = "channel.open"
    INDEX = 0x0014000A
    out_of_band: str = ""


class ChannelOpenOk(Method, frozen=True, gc=False, kw_only=True):
    """The channel is open."""

    NAME = "channel.open-ok"
    INDEX = 0x0014000B
    channel_id: bytes = b""


class ChannelFlow(Method, frozen=True, gc=False, kw_only=True):
    """The peer is asked to stop sending messages on the channel, or to go on."""

    NAME = "channel.flow"
    INDEX = 0x00140014
    active: bool = True


class ChannelFlowOk(Method, frozen=True, gc=False, kw_only=True):
    """Whether messages are sent from here on."""

    NAME = "channel.flow-ok"
    INDEX = 0x00140015
    active: bool = True


class ChannelClose(Method, frozen=True, gc=False, kw_only=True):
    """Either end closes the channel; the fields are those of connection.close."""

    NAME = "channel.close"
    INDEX = 0x00140028
    reply_code: int = 200
    reply_text: str = ""
    class_id: int = 0
    method_id: int = 0


class ChannelCloseOk(Method, frozen=True, gc=False, kw_only=True):
    """The channel's number is free again."""

    NAME = "channel.close-ok"
    INDEX = 0x00140029


class ExchangeDeclare(Method, frozen=True, gc=False, kw_only=True):
    """An exchange is made, or with `passive` only looked for."""

    NAME = "exchange.declare"
    INDEX = 0x0028000A
    ticket: int = 0
    exchange: str = ""
    type: str = "direct"
    passive: bool = False
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    nowait: bool = False
    arguments: Table = NO_TABLE


class ExchangeDeclareOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to exchange.declare."""

    NAME = "exchange.declare-ok"
    INDEX = 0x0028000B


class ExchangeDelete(Method, frozen=True, gc=False, kw_only=True):
    """An exchange is deleted."""

    NAME = "exchange.delete"
    INDEX = 0x00280014
    ticket: int = 0
    exchange: str = ""
    if_unused: bool = False
    nowait: bool = False


class ExchangeDeleteOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to exchange.delete."""

    NAME = "exchange.delete-ok"
    INDEX = 0x00280015


class ExchangeBind(Method, frozen=True, gc=False, kw_only=True):
    """An exchange gets another one's messages: RabbitMQ's extension."""

    NAME = "exchange.bind"
    INDEX = 0x0028001E
    ticket: int = 0
    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = NO_TABLE


class ExchangeBindOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to exchange.bind."""

    NAME = "exchange.bind-ok"
    INDEX = 0x0028001F


class ExchangeUnbind(Method, frozen=True, gc=False, kw_only=True):
    """That binding is taken away."""

    NAME = "exchange.unbind"
    INDEX = 0x00280028
    ticket: int = 0
    destination: str = ""
    source: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = NO_TABLE


class ExchangeUnbindOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to exchange.unbind."""

    NAME = "exchange.unbind-ok"
    INDEX = 0x00280033


class QueueDeclare(Method, frozen=True, gc=False, kw_only=True):
    """A queue is made, or with `passive` only looked for; without a name the broker chooses one."""

    NAME = "queue.declare"
    INDEX = 0x0032000A
    ticket: int = 0
    queue: str = ""
    passive: bool = False
    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    nowait: bool = False
    arguments: Table = NO_TABLE


class QueueDeclareOk(Method, frozen=True, gc=False, kw_only=True):
    """Messages ready in the queue, and its consumers."""

    NAME = "queue.declare-ok"
    INDEX = 0x0032000B
    queue: str = ""
    message_count: int = 0
    consumer_count: int = 0


class QueueBind(Method, frozen=True, gc=False, kw_only=True):
    """A queue gets messages of an exchange."""

    NAME = "queue.bind"
    INDEX = 0x00320014
    ticket: int = 0
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    nowait: bool = False
    arguments: Table = NO_TABLE


class QueueBindOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to queue.bind."""

    NAME = "queue.bind-ok"
    INDEX = 0x00320015


class QueuePurge(Method, frozen=True, gc=False, kw_only=True):
    """What is ready in a queue is thrown away."""

    NAME = "queue.purge"
    INDEX = 0x0032001E
    ticket: int = 0
    queue: str = ""
    nowait: bool = False


class QueuePurgeOk(Method, frozen=True, gc=False, kw_only=True):
    """How many messages were."""

    NAME = "queue.purge-ok"
    INDEX = 0x0032001F
    message_count: int = 0


class QueueDelete(Method, frozen=True, gc=False, kw_only=True):
    """A queue is deleted."""

    NAME = "queue.delete"
    INDEX = 0x00320028
    ticket: int = 0
    queue: str = ""
    if_unused: bool = False
    if_empty: bool = False
    nowait: bool = False


class QueueDeleteOk(Method, frozen=True, gc=False, kw_only=True):
    """How many messages were in it."""

    NAME = "queue.delete-ok"
    INDEX = 0x00320029
    message_count: int = 0


class QueueUnbind(Method, frozen=True, gc=False, kw_only=True):
    """A binding is taken away."""

    NAME = "queue.unbind"
    INDEX = 0x00320032
    ticket: int = 0
    queue: str = ""
    exchange: str = ""
    routing_key: str = ""
    arguments: Table = NO_TABLE


class QueueUnbindOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to queue.unbind."""

    NAME = "queue.unbind-ok"
    INDEX = 0x00320033


class BasicQos(Method, frozen=True, gc=False, kw_only=True):
    """How many deliveries may be unacknowledged; 0 is no limit.

    Attributes:
        prefetch_size: in octets; brokers take 0 alone.
        prefetch_count: in messages.
        global_: for the channel as a whole, and not for each consumer started afterwards.
    """

    NAME = "basic.qos"
    INDEX = 0x003C000A
    prefetch_size: int = 0
    prefetch_count: int = 0
    global_: bool = False


class BasicQosOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to basic.qos."""

    NAME = "basic.qos-ok"
    INDEX = 0x003C000B


class BasicConsume(Method, frozen=True, gc=False, kw_only=True):
    """A consumer starts; without a tag the broker chooses one."""

    NAME = "basic.consume"
    INDEX = 0x003C0014
    ticket: int = 0
    queue: str = ""
    consumer_tag: str = ""
    no_local: bool = False
    no_ack: bool = False
    exclusive: bool = False
    nowait: bool = False
    arguments: Table = NO_TABLE


class BasicConsumeOk(Method, frozen=True, gc=False, kw_only=True):
    """The consumer has started."""

    NAME = "basic.consume-ok"
    INDEX = 0x003C0015
    consumer_tag: str = ""


class BasicCancel(Method, frozen=True, gc=False, kw_only=True):
    """A consumer ends; a broker sends it when the consumer's queue is gone."""

    NAME = "basic.cancel"
    INDEX = 0x003C001E
    consumer_tag: str = ""
    nowait: bool = False


class BasicCancelOk(Method, frozen=True, gc=False, kw_only=True):
    """The consumer has ended; what it holds unacknowledged stays with the channel."""

    NAME = "basic.cancel-ok"
    INDEX = 0x003C001F
    consumer_tag: str = ""


class BasicPublish(Method, frozen=True, gc=False, kw_only=True):
    """A message to an exchange; header and body follow."""

    NAME = "basic.publish"
    INDEX = 0x003C0028
    ticket: int = 0
    exchange: str = ""
    routing_key: str = ""
    mandatory: bool = False
    immediate: bool = False


class BasicReturn(Method, frozen=True, gc=False, kw_only=True):
    """A message that no queue took, or no consumer; header and body follow."""

    NAME = "basic.return"
    INDEX = 0x003C0032
    reply_code: int = 0
    reply_text: str = ""
    exchange: str = ""
    routing_key: str = ""


class BasicDeliver(Method, frozen=True, gc=False, kw_only=True):
    """A message to a consumer; header and body follow."""

    NAME = "basic.deliver"
    INDEX = 0x003C003C
    consumer_tag: str = ""
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""


class BasicGet(Method, frozen=True, gc=False, kw_only=True):
    """One message is asked for."""

    NAME = "basic.get"
    INDEX = 0x003C0046
    ticket: int = 0
    queue: str = ""
    no_ack: bool = False


class BasicGetOk(Method, frozen=True, gc=False, kw_only=True):
    """The message; header and body follow.

    Attributes:
        message_count: left in the queue.
    """

    NAME = "basic.get-ok"
    INDEX = 0x003C0047
    delivery_tag: int = 0
    redelivered: bool = False
    exchange: str = ""
    routing_key: str = ""
    message_count: int = 0


class BasicGetEmpty(Method, frozen=True, gc=False, kw_only=True):
    """There is none."""

    NAME = "basic.get-empty"
    INDEX = 0x003C0048
    cluster_id: str = ""


class BasicAck(Method, frozen=True, gc=False, kw_only=True):
    """Deliveries are done with; from a broker: messages are confirmed.

    Attributes:
        delivery_tag: of the delivery, or number of the message published; 0 with `multiple`: all.
        multiple: all up to that number.
    """

    NAME = "basic.ack"
    INDEX = 0x003C0050
    delivery_tag: int = 0
    multiple: bool = False


class BasicReject(Method, frozen=True, gc=False, kw_only=True):
    """A delivery goes back, into the queue or away."""

    NAME = "basic.reject"
    INDEX = 0x003C005A
    delivery_tag: int = 0
    requeue: bool = True


class BasicRecoverAsync(Method, frozen=True, gc=False, kw_only=True):
    """The same without an answer; deprecated."""

    NAME = "basic.recover-async"
    INDEX = 0x003C0064
    requeue: bool = False


class BasicRecover(Method, frozen=True, gc=False, kw_only=True):
    """All that is unacknowledged goes back, or is delivered again."""

    NAME = "basic.recover"
    INDEX = 0x003C006E
    requeue: bool = False


class BasicRecoverOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to basic.recover."""

    NAME = "basic.recover-ok"
    INDEX = 0x003C006F


class BasicNack(Method, frozen=True, gc=False, kw_only=True):
    """Deliveries go back; from a broker: messages were not taken. RabbitMQ's extension."""

    NAME = "basic.nack"
    INDEX = 0x003C0078
    delivery_tag: int = 0
    multiple: bool = False
    requeue: bool = True


class ConfirmSelect(Method, frozen=True, gc=False, kw_only=True):
    """The broker shall confirm what is published on the channel: RabbitMQ's extension."""

    NAME = "confirm.select"
    INDEX = 0x0055000A
    nowait: bool = False


class ConfirmSelectOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to confirm.select."""

    NAME = "confirm.select-ok"
    INDEX = 0x0055000B


class TxSelect(Method, frozen=True, gc=False, kw_only=True):
    """Publishes and acknowledgements of the channel wait for a commit."""

    NAME = "tx.select"
    INDEX = 0x005A000A


class TxSelectOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to tx.select."""

    NAME = "tx.select-ok"
    INDEX = 0x005A000B


class TxCommit(Method, frozen=True, gc=False, kw_only=True):
    """They take effect."""

    NAME = "tx.commit"
    INDEX = 0x005A0014


class TxCommitOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to tx.commit."""

    NAME = "tx.commit-ok"
    INDEX = 0x005A0015


class TxRollback(Method, frozen=True, gc=False, kw_only=True):
    """They are undone."""

    NAME = "tx.rollback"
    INDEX = 0x005A001E


class TxRollbackOk(Method, frozen=True, gc=False, kw_only=True):
    """Done: the answer to tx.rollback."""

    NAME = "tx.rollback-ok"
    INDEX = 0x005A001F


CONTENT: frozenset[type[Method]] = frozenset((BasicPublish, BasicReturn, BasicDeliver, BasicGetOk))
"""Methods that a content header and body frames follow [4.2.6]."""

METHODS: Mapping[int, type[Method]] = MappingProxyType(
    {kind.INDEX: kind for kind in Method.__subclasses__()}
)
"""All of them, by class-id and method-id."""

_BY_BOTH = {
    ConnectionClose, ConnectionCloseOk, ChannelClose, ChannelCloseOk, ChannelFlow, ChannelFlowOk,
    BasicAck, BasicNack, BasicCancel, BasicCancelOk,
}  # fmt: skip
_ASKED = {
    ConnectionStart, ConnectionSecure, ConnectionTune, ConnectionBlocked, ConnectionUnblocked,
    BasicReturn, BasicDeliver, BasicGetEmpty,
}  # fmt: skip
_ANSWERED = {ConnectionStartOk, ConnectionSecureOk, ConnectionTuneOk}

BY_BROKER: frozenset[type[Method]] = frozenset(
    kind
    for kind in METHODS.values()
    if kind in _ASKED or (kind.NAME.endswith("-ok") and kind not in _ANSWERED | _BY_BOTH)
)
"""What only a broker sends."""

BY_CLIENT: frozenset[type[Method]] = frozenset(METHODS.values()) - BY_BROKER - _BY_BOTH
"""What only a client sends."""
