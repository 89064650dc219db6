"""Events: what `Connection.apply` tells its owner about a frame that has come.

When the owner hears of an event, the counters already include the frame, and nothing has been sent
for it. `Connection.answer(event)` does what every end has to do; the rest is the owner's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from workbench.amqp091.errors import ReplyCode, Scope
from workbench.amqp091.frame import ProtocolHeader
from workbench.amqp091.methods import ConnectionClose, Method, Properties
from workbench.amqp091.values import MOST_SHORT

if TYPE_CHECKING:
    from workbench.amqp091.channel import Channel

__all__ = [
    "Event", "HeaderReceived", "HeaderRefused", "Heartbeat", "MessageReceived", "MethodReceived",
    "PeerSilent", "ProtocolViolation",
]  # fmt: skip


class HeaderReceived(Struct, frozen=True, gc=False):
    """A client's protocol header. Answer: connection.start."""

    header: ProtocolHeader


class HeaderRefused(Struct, frozen=True, gc=False):
    """The peer speaks another protocol; the connection is over.

    Answer: a server sends a header that it knows; then drop the transport [4.2.2].

    Attributes:
        header: the peer's; None if what came is no protocol header.
        wanted: what a server answers.
    """

    header: ProtocolHeader | None
    wanted: ProtocolHeader


class Heartbeat(Struct, frozen=True, gc=False):
    """The peer lives. No answer."""


class PeerSilent(Struct, frozen=True, gc=False):
    """Nothing came for twice the heartbeat. Answer: the connection ends without a word [4.2.7].

    Attributes:
        text: how long, in words.
    """

    text: str


class MethodReceived(Struct, frozen=True):
    """A method that carries no content.

    Answer: of connection start, start-ok (a server's tune), tune, open and close; of channel open,
    close and a broker's flow: what the protocol wants next. All others: nothing, it is the
    owner's to answer.

    Attributes:
        channel: None if the method is of class connection.
        method: what came.
        tags: a server's ack, nack and reject: the deliveries that are acknowledged by it, in order;
            recover and recover-async: all that were unacknowledged; tx.rollback: those that are so
            again. At a client's ack and nack: the messages that are confirmed or refused.
        pending: one of a server's that may concern the delivery of a get before it, which has not
            been answered: neither judged nor counted. `Channel.judge` does that in its turn.
    """

    channel: Channel | None
    method: Method
    tags: tuple[int, ...] = ()
    pending: bool = False


class MessageReceived(Struct, frozen=True):
    """A message is complete: method, header and body have come. No answer.

    Attributes:
        channel: on which it came.
        method: basic.publish at a server; basic.deliver, get-ok or return at a client.
        properties: of the message.
        body: of the message.
        number: at a server in confirm mode: the message's, which the confirm has to name.
    """

    channel: Channel
    method: Method
    properties: Properties
    body: bytes
    number: int | None = None


class ProtocolViolation(Struct, frozen=True):
    """The peer broke a rule; what the frame wanted was not done.

    Answer: channel.close or connection.close with the code, according to the scope.

    Attributes:
        code: to be told to the peer.
        text: what is wrong, in RabbitMQ's words where it has any.
        channel: that finds it when its turn comes, and ends, or its connection does; None: whoever
            reads the frame finds it, and the connection ends.
        method: class-id and method-id at fault; 0 and 0 where none is.
        undecodable: a method or content header could not be read: RabbitMQ ends the transport
            without a word, and an end with `terse` set does so.
    """

    code: ReplyCode
    text: str
    channel: Channel | None = None
    method: tuple[int, int] = (0, 0)
    undecodable: bool = False

    @property
    def scope(self) -> Scope:
        """What has to end."""
        return Scope.CONNECTION if self.channel is None else self.code.scope

    @property
    def reply_text(self) -> str:
        """As it goes into a close: the code's name, and the text.

        What is longer than a short string may be ends with three dots, as RabbitMQ's does
        (`rabbit_binary_generator.erl:amqp_exception_explanation`).
        """
        text = f"{self.code.name} - {self.text}"
        octets = text.encode()
        if len(octets) <= MOST_SHORT:
            return text
        return octets[: MOST_SHORT - 3].decode(errors="ignore") + "..."

    @property
    def close(self) -> ConnectionClose:
        """The fields of the close; channel.close has the same."""
        class_id, method_id = self.method
        return ConnectionClose(
            reply_code=self.code,
            reply_text=self.reply_text,
            class_id=class_id,
            method_id=method_id,
        )


Event: TypeAlias = (
    HeaderReceived
    | HeaderRefused
    | Heartbeat
    | PeerSilent
    | MethodReceived
    | MessageReceived
    | ProtocolViolation
)
