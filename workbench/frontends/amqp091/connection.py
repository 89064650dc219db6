"""The broker's end of one AMQP 0-9-1 connection: a reader, its channels, and what it writes.

The reader takes frames off the socket and hands methods to their channels. It alone stops: when a
channel grants it nothing more, or an alarm is on, and something is being published. Then it takes
nothing off the socket, so octets pile up there until TCP holds the client (`rabbit_reader.erl`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from workbench.amqp091.channel import Channel
from workbench.amqp091.connection import Connection
from workbench.amqp091.errors import DecodeError, ReplyCode
from workbench.amqp091.events import (
    Event,
    HeaderRefused,
    MessageReceived,
    MethodReceived,
    PeerSilent,
    ProtocolViolation,
)
from workbench.amqp091.frame import CONTENT_PARTS, Frame, WireItem, item_size
from workbench.amqp091.methods import (
    BasicDeliver,
    ChannelCloseOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionStartOk,
)
from workbench.amqp091.scope import ItemScope
from workbench.amqp091.settings import CLIENT_CAPABILITIES, ConnectionSettings
from workbench.amqp091.states import ChannelState
from workbench.amqp091.values import read_table
from workbench.broker import Broker, QueueProcess
from workbench.broker.hops import Hops
from workbench.presets import RABBITMQ
from workbench.sim import Actor, Flight, Wire

from .channel import ChannelProcess
from .publisher_flow import READER
from .throttle import Throttle

VHOST = "/"
ALARM = "alarm"


_Unread: TypeAlias = Flight | DecodeError
"""In the reader's mailbox: a frame in the socket, or octets there that are none."""


class BrokerConnection091:
    """One connection as the broker has it; an end of a wire.

    Args:
        broker: that the client has connected to.
        name: of the connection.

    Attributes:
        name: `c1`, `c2`, ...
        amqp: the protocol endpoint.
        wire: over which it talks.
        throttle: what holds the reader.
        reader: the process that takes frames off the wire.
        user: who has logged in; empty before.
        writable: False while the transport takes no more octets.
        work: does a piece of a process's work; a live listener sees to mistakes in it there.
    """

    vantage = "broker"
    from_peer = "broker"
    ledger_source = "own"

    def __init__(self, broker: Broker, name: str) -> None:
        preset = broker.preset
        self.name = name
        self.user = ""
        self.wire: Wire | None = None
        self.writable = True
        self.work: Callable[..., None] = _at_once
        self._broker = broker
        self._channels: dict[Channel, ChannelProcess] = {}
        self._numbers: dict[int, Channel] = {}  # the latest of each number
        self._events: list[Event] = []
        self._parked: deque[tuple[Flight, tuple[Channel, str] | None]] = deque()
        self._unsent: dict[tuple[Channel, str], int] = {}
        self._delivering: tuple[Channel, str] | None = None
        self._closing = False
        self._over = False
        vantage = f"reader:{name}"
        self._hops = Hops(broker.tap, broker.clock, vantage, connection=name)
        self.reader: Actor[_Unread] = Actor(
            broker.clock,
            vantage,
            service_us=preset.reader_us,
            handle=lambda unread: self.work(self._read, unread),
            flow=broker.process_flow(),
            penalty_ns=preset.penalty_ns,
            blocking=self._credit,
            watch=self._hops,
        )
        self._notes = broker.tap.bind(broker.clock, vantage=vantage, connection=name)
        self.throttle = Throttle(self, lambda: broker.clock.now_us, preset.flow_shown_us)
        self.amqp = Connection(
            is_client=False,
            emit=self._emit,
            settings=ConnectionSettings(
                channel_max=preset.channel_max_091,
                frame_max=preset.max_frame_size,
                least_frame_max=preset.frame_min_091,
                heartbeat_s=2 * preset.idle_time_out_ms // 1000,
                max_message_size=preset.max_message_size or None,
                properties={
                    "capabilities": {
                        **CLIENT_CAPABILITIES,
                        "consumer_priorities": True,
                        "direct_reply_to": True,
                        "per_consumer_qos": True,
                    },
                    "product": preset.product,
                    "version": preset.version,
                },
                mechanisms="PLAIN AMQPLAIN" + (" ANONYMOUS" if broker.anonymous else ""),
                terse=preset.conduct == RABBITMQ,
                tells_opening=preset.tells_opening_091,
                close_frees=preset.close_frees_channel,
            ),
        )
        self._reader_stops = preset.alarm_brake == READER
        if self._reader_stops:
            self.throttle.alarms(broker.alarms)

    # -- an end of a wire -------------------------------------------------------------------

    def connect(self, wire: Wire) -> None:
        """Take the wire and wait for the client's header."""
        self.wire = wire
        self.amqp.start()

    def intake(self, unread: _Unread) -> None:
        """A frame is in the socket; the reader takes it off when it comes to it."""
        if self._over:
            self._read(unread)  # of what still comes, the answer to a close alone
        else:
            self.reader.post(unread)

    def _read(self, unread: _Unread) -> None:
        """Take a frame off the socket, and do what the reader does about it."""
        item = None
        if isinstance(unread, DecodeError):
            self._events += self.amqp.undecodable(unread)
        else:
            assert self.wire is not None
            self.wire.take_in(unread)
            item = unread.item
        events, self._events = self._events, []
        if events:
            self._work(events)
        if type(item) is Frame and type(item.payload) in CONTENT_PARTS:
            self.throttle.published()

    def apply(self, item: WireItem) -> list[Event]:
        """Work a frame into the state; what it means is done when it was recorded."""
        if self._broker.memory is not None:
            self._broker.received(item_size(item))
        self._events += self.amqp.apply(item)
        return []

    def react(self, events: Iterable[Event]) -> None:
        """Do what frames ask for that did not come through the reader."""
        self._work(events)

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the frame concerns, with the broker's counters."""
        return self.amqp.scope(item, outgoing)

    def kick(self) -> None:
        """The transport takes octets again: what waits goes, and channels get more."""
        assert self.wire is not None
        while self._parked and self.writable:
            flight, delivery = self._parked.popleft()
            if delivery is not None:
                self._unsent[delivery] -= 1
                if not self._unsent[delivery]:
                    del self._unsent[delivery]  # its channel may be gone
            self.wire.depart(flight)
        if not self._parked:
            for channel in tuple(self._channels.values()):
                channel.kick()

    def _emit(self, item: WireItem) -> None:
        assert self.wire is not None, "connect the broker's end to a wire first"
        if self.sends_at_once():
            self.wire.send(self, item)
            return
        delivery = None
        if type(item) is Frame and isinstance(item.payload, BasicDeliver):
            delivery = self._delivering
            if delivery is not None:
                self._unsent[delivery] = self._unsent.get(delivery, 0) + 1
        self._parked.append((self.wire.park(self, item), delivery))

    # -- the reader -------------------------------------------------------------------------

    def _work(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case MessageReceived(channel=channel):
                    self._channel(channel).message_came(self.reader, event)
                case MethodReceived(channel=Channel() as channel):
                    if not isinstance(event.method, ChannelCloseOk):
                        self._channel(channel).method_came(event)
                    elif channel.closing:
                        self._channel(channel).left()
                    else:
                        self.forget(channel)
                case ProtocolViolation(channel=Channel() as channel):
                    self._channel(channel).violated(event)
                case MethodReceived(method=ConnectionStartOk() as method):
                    self._login(event, method)
                case MethodReceived(method=ConnectionOpen(virtual_host=vhost)) if vhost != VHOST:
                    self._refuse_vhost(event, vhost)
                case MethodReceived(method=ConnectionClose()):
                    self._close(event)
                case ProtocolViolation() | PeerSilent():
                    self.violated(event)
                case HeaderRefused():
                    self.amqp.answer(event)
                    self._end()
                case _:
                    self.amqp.answer(event)
            if self.amqp.ended:
                self._end()

    def _channel(self, channel: Channel) -> ChannelProcess:
        process = self._channels.get(channel)
        if process is None:
            old = self._numbers.get(channel.number)
            if old is not None:  # closed, or about to be
                self._channels[old].finish(partial(self.forget, old))
            process = self._channels[channel] = ChannelProcess(self, self._broker, channel)
            self._numbers[channel.number] = channel
        return process

    def channel_closed(self, channel: Channel, event: MethodReceived) -> None:
        """A channel that the client closes has worked off what was there: answer."""
        self.amqp.answer(event)
        if channel.state is ChannelState.CLOSED:  # else the broker's own close waits for its answer
            self.forget(channel)

    def forget(self, channel: Channel) -> None:
        """A channel is closed at both ends."""
        process = self._channels.pop(channel, None)
        if process is not None:
            process.end()
            if self._numbers.get(channel.number) is channel:
                del self._numbers[channel.number]

    def _login(self, event: MethodReceived, method: ConnectionStartOk) -> None:
        user, password = _credentials(method)
        anonymous = method.mechanism == "ANONYMOUS" and self._broker.anonymous
        if anonymous or self._broker.login(user, password):
            self.user = "guest" if anonymous else user
            self.amqp.answer(event)
            return
        why = (
            "ACCESS_REFUSED - Login was refused using authentication mechanism"
            f" {method.mechanism}. For details see the broker logfile."
        )
        if "authentication_failure_close" in self.amqp.peer_capabilities:
            self.amqp.close(ReplyCode.ACCESS_REFUSED, why)
        else:
            self.amqp.abandon()
            self._ended_silently(why)

    def _ended_silently(self, why: str) -> None:
        """The transport ends, and the client is not told why; whoever reads the trace is."""
        self._notes.note("error", extra={"text": why})

    def _refuse_vhost(self, event: MethodReceived, vhost: str) -> None:
        text = f"vhost {vhost} not found"
        self.violated(self.amqp.violated(ReplyCode.NOT_ALLOWED, text, event.method))

    def _close(self, event: MethodReceived) -> None:
        """The client closes: its channels work off what they have, and then it is answered.

        What ends the connection meanwhile is told instead (`rabbit_reader.erl:maybe_close`). Who
        closes again is answered at once.
        """
        if self._closing:
            self.amqp.emit_frame(Frame(0, ConnectionCloseOk()))
            return
        self._closing = True
        channels = tuple(self._channels.values())
        waiting = len(channels)

        def one_done() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting and not self._over:
                closed()

        def closed() -> None:
            self._end()
            self.amqp.answer(event)

        for process in channels:
            process.finish(one_done)
        if not channels:
            closed()

    def _end(self) -> None:
        """The connection is over: its channels end, and the queues that belong to it."""
        if self._over:
            return
        self._over = True
        for process in tuple(self._channels.values()):
            process.end()
        self._channels.clear()
        self._numbers.clear()
        unread = self.reader.waiting(Flight)
        self.reader.end()
        if not self.amqp.ended:
            for flight in unread:
                self._read(flight)
        self._broker.vhost.connection_over(self.name)

    # -- what holds the reader --------------------------------------------------------------

    def _credit(self, blocked: bool) -> None:
        self._hops.blocking(blocked)
        self.throttle.credit(blocked)

    def resource_alarm(self, on: bool) -> None:
        """The first resource alarm is set, or the last one is cleared.

        Nothing is sent for that, or each channel is told.
        """
        if self._reader_stops:
            self.throttle.alarms(self._broker.alarms)
            return
        for process in tuple(self._channels.values()):
            process.alarm(on)

    def reading(self, on: bool) -> None:
        """The reader goes on, or stops."""
        self.work(self.reader.resume if on else self.reader.stall)
        self.amqp.idle.deaf = not on
        self._notes.note("note", "state", extra={"state": self.throttle.state})

    def tell_blocked(self, reason: str) -> None:
        """Tell the client, if it understands: connection.blocked."""
        self._notes.note("block", ALARM, extra={"reason": reason})
        if self.amqp.opened and self._broker.preset.tells_blocked:
            self.amqp.block(reason)

    def tell_unblocked(self) -> None:
        """Tell it that this is over."""
        self._notes.note("unblock", ALARM)
        if self.amqp.opened and self._broker.preset.tells_blocked:
            self.amqp.unblock()

    # -- what becomes of the transport ----------------------------------------------------------

    def undecodable(self, error: DecodeError) -> None:
        """Octets came that are no AMQP 0-9-1: close with the code that says so."""
        self.intake(error)

    def failed(self, error: Exception) -> None:
        """A mistake of ours: close with internal-error, as RabbitMQ's reader does."""
        text = f"{type(error).__name__}: {error}"
        self.violated(self.amqp.violated(ReplyCode.INTERNAL_ERROR, text))

    def cut_off(self, code: ReplyCode, text: str) -> None:
        """The broker wants no more of this client: close, with the reason."""
        self.violated(self.amqp.violated(code, text))

    def lost(self) -> None:
        """The transport is gone: every channel with it."""
        self._parked.clear()
        self.amqp.abandon()
        self._end()

    # -- asked by channels ------------------------------------------------------------------

    def violated(self, event: ProtocolViolation | PeerSilent) -> None:
        """A rule of the connection is broken: it ends, with all its channels."""
        self.amqp.answer(event)
        if self.amqp.ended:
            self._ended_silently(event.text if isinstance(event, PeerSilent) else event.reply_text)
        self._end()

    @property
    def tells_cancels(self) -> bool:
        """Whether the client wants to hear of consumers that the broker has cancelled."""
        return "consumer_cancel_notify" in self.amqp.peer_capabilities

    def sends_at_once(self) -> bool:
        """Whether nothing waits for the transport."""
        return self.writable and not self._parked

    def unsent(self, channel: Channel, queue: str) -> int:
        """Deliveries of a queue on a channel that wait for the transport."""
        return self._unsent.get((channel, queue), 0)

    def delivering(self, channel: Channel, queue: str) -> None:
        """What is sent next is a delivery of this queue."""
        self._delivering = (channel, queue)

    # -- asked by the broker ----------------------------------------------------------------

    def queue_deleted(self, queue: QueueProcess) -> None:
        """A queue is no more."""
        for process in tuple(self._channels.values()):
            process.queue_deleted(queue)

    @property
    def backlog(self) -> int:
        """Frames that the reader and the channels have not come to yet."""
        return self.reader.depth + sum(one.process.depth for one in self._channels.values())

    @property
    def held_octets(self) -> int:
        """What waits for its channels, or has come in part; in its socket where nobody reads it."""
        waiting = self.reader.waiting(Flight) if self.throttle.blocked else ()
        return sum(
            process.held_octets + channel.unfinished_octets
            for channel, process in self._channels.items()
        ) + sum(item_size(flight.item) for flight in waiting)

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture: state, reader, and each channel under its number."""
        picture: dict[str, int | bool | str] = {
            "state": self.throttle.state if self.amqp.opened else self.amqp.state.value,
            "reader.mailbox": self.reader.depth,
        }
        for channel, process in self._channels.items():
            for name, value in process.overview().items():
                picture[f"channel_{channel.number}.{name}"] = value
        return picture


def _at_once(work: Callable[..., None], *args: Any) -> None:
    work(*args)


def _credentials(method: ConnectionStartOk) -> tuple[str, str]:
    """User and password, by either mechanism; empty where they cannot be read."""
    if method.mechanism == "PLAIN":
        parts = method.response.decode(errors="replace").split("\0")
        return (parts[1], parts[2]) if len(parts) == 3 else ("", "")
    if method.mechanism == "AMQPLAIN":
        size = len(method.response).to_bytes(4, "big")
        try:
            table, _ = read_table(size + method.response, 0, 4 + len(method.response))
        except DecodeError:
            return "", ""
        return str(table.get("LOGIN", "")), str(table.get("PASSWORD", ""))
    return "", ""
