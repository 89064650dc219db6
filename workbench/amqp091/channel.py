"""One end of a channel: its state, the message under way, and its book [2.2.5, 4.2.6]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.amqp091.counters import BEHIND_GETS, ChannelCounters, Ledger
from workbench.amqp091.errors import LocalProtocolError, ReplyCode
from workbench.amqp091.events import Event, MessageReceived, MethodReceived, ProtocolViolation
from workbench.amqp091.frame import BASIC, ContentHeader, Frame, Payload, Undecodable, body_parts
from workbench.amqp091.methods import (
    CONTENT,
    NO_PROPERTIES,
    BasicAck,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConfirmSelect,
    Method,
    Properties,
    TxCommit,
    TxRollback,
    TxSelect,
)
from workbench.amqp091.states import (
    CHANNEL_TABLE,
    OTHER,
    ChannelState,
    next_state,
    require,
    step_of,
)

if TYPE_CHECKING:
    from workbench.amqp091.connection import Connection

__all__ = ["Channel"]

CLOSED, OPENED = ChannelState.CLOSED, ChannelState.OPENED
CLOSE_SENT, CLOSE_RCVD = ChannelState.CLOSE_SENT, ChannelState.CLOSE_RCVD
HEARD_BEHIND_CLOSE = ChannelOpen | ChannelClose | ChannelCloseOk


class Channel:
    """One end of a channel; `Connection.open_channel` makes a client's, a channel.open a server's.

    Attributes:
        number: on the wire.
        ordinal: in order of opening on the connection, from 1; a number that is used again gets a
            new one.
        state: of the channel.
        counters: consumers, prefetch, unacknowledged deliveries, confirms.
        error: the close with which either end has ended it.
    """

    def __init__(self, connection: Connection, number: int, ordinal: int) -> None:
        self.connection = connection
        self.number = number
        self.ordinal = ordinal
        self.state = CLOSED
        self.counters = ChannelCounters()
        self.error: ChannelClose | None = None
        self._method: Method | None = None  # whose content is under way from the peer
        self._header: ContentHeader | None = None
        self._body = bytearray()
        self._missing = 0  # octets of the body
        self._pending = 0  # methods that the owner has not had judged yet
        self._number: int | None = None  # of the message under way, in confirm mode
        self._words = f"channel {number}"

    def __repr__(self) -> str:
        return f"<channel {self.number}: {self.state.value}>"

    @property
    def opened(self) -> bool:
        """Both ends may use it."""
        return self.state is OPENED

    @property
    def closing(self) -> bool:
        """The peer has closed it, and is not answered yet."""
        return self.state is CLOSE_RCVD

    @property
    def usable(self) -> bool:
        """Both ends may use it, and the connection."""
        return self.state is OPENED and self.connection.opened

    @property
    def can_send(self) -> bool:
        """This end may send on it: until it has closed it, or answered the peer's close."""
        return self.connection.can_send and (True, OTHER) in CHANNEL_TABLE[self.state]

    @property
    def unfinished_octets(self) -> int:
        """What has come of a message whose last part has not."""
        return 0 if self._header is None else self._header.body_size - self._missing

    def ledger(self, consumer: str | None = None) -> Ledger:
        """The counters as a trace has them; see `ChannelCounters.ledger`."""
        return self.counters.ledger(consumer)

    # -- what goes out --------------------------------------------------------------------------

    def send(self, method: Method) -> None:
        """Sends a method that carries no content.

        Raises:
            LocalProtocolError: it is not legal now.
        """
        if type(method) in CONTENT:
            raise LocalProtocolError(f"{method.NAME} carries content: legal is send_content")
        step = self._require(method)
        consumer = self.counters.consumer_of(method)
        self.state = step
        self.counters.see(method, self.connection.is_client)
        self.connection.emit_frame(Frame(self.number, method), self, consumer)
        self._forget()

    def send_content(
        self, method: Method, body: bytes = b"", properties: Properties = NO_PROPERTIES
    ) -> None:
        """Sends a method with its header, and its body in frames of frame-max at most.

        Raises:
            LocalProtocolError: it is not legal now, or carries no content.
        """
        if type(method) not in CONTENT:
            raise LocalProtocolError(f"{method.NAME} carries no content: legal is send")
        self.state = self._require(method)
        consumer = self.counters.consumer_of(method)
        self.counters.see(method, self.connection.is_client)
        emit = self.connection.emit_frame
        emit(Frame(self.number, method), self, consumer)
        header = ContentHeader(body_size=len(body), properties=properties)
        emit(Frame(self.number, header), self, consumer)
        for part in body_parts(body, self.connection.frame_max):
            emit(Frame(self.number, part), self, consumer)

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: Properties = NO_PROPERTIES,
        *,
        mandatory: bool = False,
        immediate: bool = False,
    ) -> int:
        """Publishes a message, as a client.

        Returns:
            Its number in the channel, from 1: in confirm mode the one that the confirm names.

        Raises:
            LocalProtocolError: not legal now, or the broker has stopped it by channel.flow.
        """
        if not self.counters.publishing:
            raise LocalProtocolError(
                f"channel {self.number} was stopped by channel.flow; legal now: wait for active"
            )
        method = BasicPublish(
            exchange=exchange, routing_key=routing_key, mandatory=mandatory, immediate=immediate
        )
        self.send_content(method, body, properties)
        return self.counters.published

    def deliver(
        self,
        consumer_tag: str,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: Properties = NO_PROPERTIES,
        *,
        redelivered: bool = False,
    ) -> int:
        """Delivers a message to a consumer, as a server; returns its delivery-tag.

        Raises:
            LocalProtocolError: not legal now, or there is no such consumer.
        """
        if consumer_tag not in self.counters.consumers:
            raise LocalProtocolError(f"channel {self.number} has no consumer {consumer_tag!r}")
        method = BasicDeliver(
            consumer_tag=consumer_tag,
            delivery_tag=self.counters.delivered + 1,
            redelivered=redelivered,
            exchange=exchange,
            routing_key=routing_key,
        )
        self.send_content(method, body, properties)
        return method.delivery_tag

    def get_ok(
        self,
        exchange: str,
        routing_key: str,
        message_count: int,
        body: bytes = b"",
        properties: Properties = NO_PROPERTIES,
        *,
        redelivered: bool = False,
    ) -> int:
        """Answers a basic.get with a message, as a server; returns its delivery-tag.

        Raises:
            LocalProtocolError: not legal now.
        """
        method = BasicGetOk(
            delivery_tag=self.counters.delivered + 1,
            redelivered=redelivered,
            exchange=exchange,
            routing_key=routing_key,
            message_count=message_count,
        )
        self.send_content(method, body, properties)
        return method.delivery_tag

    def close(
        self,
        code: ReplyCode = ReplyCode.REPLY_SUCCESS,
        text: str = "",
        method: tuple[int, int] = (0, 0),
    ) -> None:
        """Closes the channel; what still comes on it has no effect.

        Args:
            code: why.
            text: why, in words: the whole reply-text.
            method: class-id and method-id at fault.

        Raises:
            LocalProtocolError: it is not open.
        """
        class_id, method_id = method
        said = ChannelClose(
            reply_code=code, reply_text=text, class_id=class_id, method_id=method_id
        )
        self._require(said)
        self.error = self.error or said
        self._drop_content()
        if self.connection.settings.close_frees:
            self.connection.channels[self.number] = self  # it waits for the peer's close-ok again
        self.send(said)

    def _require(self, method: Method) -> ChannelState:
        """The state behind a method that this end wants to send."""
        connection = self.connection
        connection.check_can_send(method)
        return require(CHANNEL_TABLE, self.state, step_of(method), self._words, method.NAME)

    # -- what comes -----------------------------------------------------------------------------

    def take(self, payload: Payload) -> tuple[list[Event], str | None]:
        """Works in what the peer sent on the channel.

        Returns:
            Events, and the consumer that it concerns.
        """
        if self.state is CLOSE_SENT and not isinstance(payload, ChannelClose | ChannelCloseOk):
            return [], None
        if type(payload) is Undecodable:
            return [self.connection.unreadable(payload)], None
        if isinstance(payload, Method):
            if self.state is CLOSE_RCVD and not isinstance(payload, HEARD_BEHIND_CLOSE):
                return [], None
            consumer = self.counters.consumer_of(payload)
            return self._take_method(payload), consumer
        consumer = None if self._method is None else self.counters.consumer_of(self._method)
        if isinstance(payload, ContentHeader):
            return self._take_header(payload), consumer
        assert isinstance(payload, bytes)
        return self._take_body(payload), consumer

    def judge(self, event: MethodReceived) -> MethodReceived | ProtocolViolation:
        """What a pending method means, or what is wrong with it, now that its turn has come."""
        self._pending -= 1
        fault = self._fault_of(event.method)
        if fault is not None:
            return fault
        return MethodReceived(self, event.method, self.counters.count(event.method, True))

    def _misplaced(self, method: Method) -> ProtocolViolation | None:
        """What is wrong with a method that comes here and now, whatever it says."""
        if self._method is not None:
            return self._unexpected("non content header" if self._header is None else "")
        if not self.connection.may_send(method, from_client=not self.connection.is_client):
            return self._violated(ReplyCode.COMMAND_INVALID, "unimplemented method", method)
        if next_state(CHANNEL_TABLE, self.state, step_of(method), sent=False) is None:
            code, text = ReplyCode.CHANNEL_ERROR, "second 'channel.open' seen"
            if self.state is CLOSED:
                text = "expected 'channel.open'"
            elif not isinstance(method, ChannelOpen):
                code, text = ReplyCode.COMMAND_INVALID, "unimplemented method"
            return self._violated(code, text, method)
        return None

    def _fault_of(self, method: Method) -> ProtocolViolation | None:
        """What the book has against a method, before anything is changed."""
        counters = self.counters
        text = ""
        match method:
            case BasicAck() | BasicNack() | BasicReject() if not self.connection.is_client:
                if not counters.knows(method):
                    text = f"unknown delivery tag {method.delivery_tag}"
            case ConfirmSelect() if counters.transactional:
                text = "cannot switch from tx to confirm mode"
            case TxSelect() if counters.confirming:
                text = "cannot switch from confirm to tx mode"
            case TxCommit() | TxRollback() if not counters.transactional:
                text = "channel is not transactional"
        if text:
            return self._violated(ReplyCode.PRECONDITION_FAILED, text, method)
        return None

    def _take_method(self, method: Method) -> list[Event]:
        fault = self._misplaced(method)
        if fault is None:
            behind = self.counters.getting or self._pending
            if behind and type(method) in BEHIND_GETS and not self.connection.is_client:
                self._pending += 1
                return [MethodReceived(self, method, pending=True)]
            fault = self._fault_of(method)
        if fault is not None:
            return [fault]
        step = step_of(method)
        if step is OTHER:
            tags = self.counters.see(method, not self.connection.is_client)
            if type(method) in CONTENT:
                self._method = method
                confirming = isinstance(method, BasicPublish) and self.counters.confirming
                self._number = self.counters.published if confirming else None
                return []
            return [MethodReceived(self, method, tags)]
        self.state = CHANNEL_TABLE[self.state][False, step]
        if isinstance(method, ChannelClose):
            self.error = self.error or method
        if self.state is CLOSE_RCVD and (
            isinstance(method, ChannelCloseOk) or self.connection.settings.close_frees
        ):
            self.connection.forget(self)
        self._forget()
        return [MethodReceived(self, method)]

    def _take_header(self, header: ContentHeader) -> list[Event]:
        method = self._method
        if method is None:
            return [self._unexpected("")]
        if self._header is not None:
            return [self._unexpected("non content body")]
        if header.class_id != BASIC:
            return [self._unexpected(f"one for class {header.class_id}")]
        if header.weight:
            return [self._unexpected("one with a weight")]
        most = self.connection.settings.max_message_size
        if most is not None and header.body_size > most:
            text = f"message size {header.body_size} is larger than configured max size {most}"
            return [self._violated(ReplyCode.PRECONDITION_FAILED, text, method)]
        self._header = header
        self._missing = header.body_size
        return self._complete()

    def _take_body(self, part: bytes) -> list[Event]:
        if self._method is None:
            return [self._unexpected("")]
        if self._header is None:
            return [self._unexpected("non content header")]
        if len(part) > self._missing:
            text = "content body frame exceeds remaining content size"
            return [self._hard(ReplyCode.FRAME_ERROR, text, self._method.numbers)]
        self._missing -= len(part)
        if self._missing or self._body:
            self._body += part  # whole messages in one frame, the most, are not copied
        return self._complete(part)

    def _complete(self, last: bytes = b"") -> list[Event]:
        """The message, once all of it is there."""
        if self._missing:
            return []
        method, header = self._method, self._header
        assert method is not None
        assert header is not None
        body = bytes(self._body) if self._body else last
        number = self._number
        self._drop_content()
        return [MessageReceived(self, method, header.properties, body, number)]

    def _drop_content(self) -> None:
        self._method = self._header = self._number = None
        self._body = bytearray()
        self._missing = 0

    def _forget(self) -> None:
        if self.state is CLOSED:
            self.connection.forget(self)

    # -- what is wrong --------------------------------------------------------------------------

    def violated(
        self, code: ReplyCode, text: str, method: Method | None = None
    ) -> ProtocolViolation:
        """The event for a rule that the peer broke; the code decides what has to end."""
        return self._violated(code, text, method)

    def _violated(self, code: ReplyCode, text: str, method: Method | None) -> ProtocolViolation:
        numbers = (0, 0) if method is None else method.numbers
        return ProtocolViolation(code=code, text=text, channel=self, method=numbers)

    def _hard(self, code: ReplyCode, text: str, numbers: tuple[int, int]) -> ProtocolViolation:
        return ProtocolViolation(code=code, text=text, method=numbers)

    def _unexpected(self, got: str) -> ProtocolViolation:
        """A frame of the wrong kind, in RabbitMQ's words [rabbit_command_assembler.erl]."""
        if self._method is None:
            text, numbers = "expected method frame, got non method frame instead", (0, 0)
        elif self._header is None:
            got = got if got.startswith("one") else f"{got} frame"
            text = f"expected content header for class {BASIC}, got {got} instead"
            numbers = self._method.numbers
        else:
            text = "expected content body, got non content body frame instead"
            numbers = self._method.numbers
        return self._hard(ReplyCode.UNEXPECTED_FRAME, text, numbers)
