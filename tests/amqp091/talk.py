"""Conversations between a client and a server on channel 1, as `tests.conversation` reads them."""

from collections import deque

from tests.conversation import Conversation
from workbench.amqp091.connection import Connection
from workbench.amqp091.errors import LocalProtocolError
from workbench.amqp091.events import MessageReceived, MethodReceived, ProtocolViolation
from workbench.amqp091.frame import Frame, FrameReader, ProtocolHeader, encode_item, kind_of
from workbench.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicGetEmpty,
    BasicNack,
    BasicQos,
    BasicQosOk,
    BasicRecover,
    BasicRecoverOk,
    BasicReject,
    ChannelFlow,
    ConfirmSelect,
    ConfirmSelectOk,
    TxCommit,
    TxCommitOk,
    TxRollback,
    TxRollbackOk,
    TxSelect,
    TxSelectOk,
)
from workbench.amqp091.settings import CLIENT_CAPABILITIES, ConnectionSettings

CLIENT = {"properties": {"capabilities": CLIENT_CAPABILITIES}}
REPLIES = {
    BasicQos: BasicQosOk,
    BasicRecover: BasicRecoverOk,
    ConfirmSelect: ConfirmSelectOk,
    TxSelect: TxSelectOk,
    TxCommit: TxCommitOk,
    TxRollback: TxRollbackOk,
}


class Side:
    """One end: what it has sent and heard, and what is on its way to the peer."""

    def __init__(self, is_client, settings):
        self.flying = deque()
        self.sent = []
        self.events = []
        self.connection = Connection(is_client=is_client, emit=self._emit, settings=settings)

    def _emit(self, item):
        self.flying.append(item)
        self.sent.append(item)

    @property
    def channel(self):
        return self.connection.channels[1]

    def heard(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


class Talk(Conversation):
    """A client and a server whose channel 1 is open; whoever's turn it is acts and is looked at.

    Frames are octets on the way, which arrive when an act is over. The server answers what wants
    an answer; a get is answered by the script.
    """

    def __init__(self, opened=True, client=(), server=()):
        self.client = Side(True, ConnectionSettings(**{**CLIENT, **dict(client)}))
        self.server = Side(False, ConnectionSettings(**dict(server)))
        self.readers = {
            self.client: FrameReader(0, mid_stream=True),
            self.server: FrameReader(0),
        }
        self.turn = self.client
        self.refused = None
        if opened:
            self.client.connection.start()
            self.pump()
            self.opened = self.client.connection.open_channel()
            self.pump()

    def pump(self):
        ends = ((self.client, self.server), (self.server, self.client))
        while self.client.flying or self.server.flying:
            for sender, receiver in ends:
                while sender.flying:
                    self.arrive(receiver, sender.flying.popleft())

    def arrive(self, side, item):
        for raw in self.readers[side].feed(encode_item(item)):
            assert raw.item == item
            events = side.connection.apply(raw.item)
            for event in events:
                side.events.append(event)
                side.connection.answer(event)
                if side is self.server and isinstance(event, MethodReceived):
                    self.reply(event)

    def reply(self, event):
        kind = type(event.method)
        if kind in REPLIES:
            event.channel.send(REPLIES[kind]())
        elif kind is BasicConsume:
            tag = event.method.consumer_tag or "amq.1"
            event.channel.send(BasicConsumeOk(consumer_tag=tag))
        elif kind is BasicCancel and not event.method.nowait:
            event.channel.send(BasicCancelOk(consumer_tag=event.method.consumer_tag))

    # -- acts -----------------------------------------------------------------------------------

    def turn_to(self, who):
        self.turn = getattr(self, who)

    def go_on(self):
        self.pump()

    def send(self, method):
        try:
            self.turn.channel.send(method)
        except LocalProtocolError as error:
            self.refused = error.message

    def do_qos(self, count, shared=False):
        self.send(BasicQos(prefetch_count=count, global_=shared))

    def do_consume(self, tag="", no_ack=False):
        self.send(BasicConsume(queue="q", consumer_tag=tag, no_ack=no_ack))

    def do_cancel(self, tag):
        self.send(BasicCancel(consumer_tag=tag))

    def do_get(self, no_ack=False):
        self.send(BasicGet(queue="q", no_ack=no_ack))

    def do_deliver(self, tag, count=1):
        for _ in range(count):
            self.turn.channel.deliver(tag, "", "q", b"m")

    def do_got(self, left=0):
        self.turn.channel.get_ok("", "q", left, b"m")

    def do_empty(self):
        self.send(BasicGetEmpty())

    def do_ack(self, tag, multiple=False):
        self.send(BasicAck(delivery_tag=tag, multiple=multiple))

    def do_nack(self, tag, multiple=False):
        self.send(BasicNack(delivery_tag=tag, multiple=multiple))

    def do_reject(self, tag):
        self.send(BasicReject(delivery_tag=tag))

    def do_recover(self):
        self.send(BasicRecover(requeue=True))

    def do_confirm(self):
        self.send(ConfirmSelect())

    def do_publish(self, count=1, size=1):
        for _ in range(count):
            try:
                self.turn.channel.publish("", "q", bytes(size))
            except LocalProtocolError as error:
                self.refused = error.message

    def do_flow(self, active):
        self.send(ChannelFlow(active=active))

    def do_tx(self, what):
        self.send({"select": TxSelect, "commit": TxCommit, "rollback": TxRollback}[what]())

    def do_block(self, reason="low on memory"):
        self.turn.connection.block(reason)

    def do_unblock(self):
        self.turn.connection.unblock()

    def do_close(self):
        self.turn.channel.close()

    # -- sights ---------------------------------------------------------------------------------

    def counters(self):
        """Of the channel, whose two books agree once nothing is on its way."""
        client, server = self.client.channel.counters, self.server.channel.counters
        names = set(vars(client)) - {"_asked", "_getting"}
        for name in names:
            assert getattr(client, name) == getattr(server, name), name
        return client

    def see_unacked(self):
        return [
            f"{tag}{'' if name is None else '@' + name}"
            for tag, name in sorted(self.counters().unacked.items())
        ]

    def see_held(self):
        """Unacknowledged of limit, by consumer."""
        counters = self.counters()
        return [f"{c.tag}={c.unacked}/{c.prefetch_count}" for c in counters.consumers.values()]

    def see_ledger(self):
        self.counters()
        return list(self.client.channel.ledger().values())

    def see_unconfirmed(self):
        return list(self.counters().unconfirmed)

    def see_tags(self):
        """Of the last ack, nack, reject, recover or rollback that the peer of the turn heard."""
        other = self.server if self.turn is self.client else self.client
        return next(
            list(event.tags) for event in reversed(other.heard(MethodReceived)) if event.channel
        )

    def see_message(self):
        """Number and size of the last message that the server heard."""
        event = self.server.heard(MessageReceived)[-1]
        return [event.number, len(event.body)]

    def see_frames(self):
        """Kinds of the client's last frames since its last method without content."""
        kinds = [kind_of(item) for item in self.client.sent]
        last = max(at for at, kind in enumerate(kinds) if kind == "basic.publish")
        return kinds[last:]

    def see_error(self):
        """What the server found wrong last."""
        found = self.server.heard(ProtocolViolation)
        return f"{found[-1].code.value} {found[-1].scope.value} {found[-1].text}" if found else None

    def see_refused(self):
        return self.refused

    def see_state(self):
        return self.opened.state.value

    def see_blocked(self):
        assert self.client.connection.blocked == self.server.connection.blocked
        return self.client.connection.blocked


__all__ = ["CLIENT", "Frame", "ProtocolHeader", "Side", "Talk"]
