"""A client and a server that talk octets, and stop where a test wants to look."""

from workbench.amqp010.connection import Connection, ConnectionSettings
from workbench.amqp010.errors import DecodeError
from workbench.amqp010.events import CommandReceived
from workbench.amqp010.frame import Frame, FrameReader, encode_item


class End:
    """One end, with what it has sent and not been read, and the events that it has had."""

    def __init__(self, is_client, **settings):
        self.out, self.sent, self.events = [], [], []
        self.kept = ()  # kinds of commands that the test completes itself
        self.amqp = Connection(
            is_client=is_client, emit=self._emit, settings=ConnectionSettings(**settings)
        )
        self.reader = FrameReader()

    def _emit(self, item):
        self.out.append(encode_item(item))
        self.sent.append(item)

    def feed(self, octets):
        """Apply octets of the peer, and answer what is not kept."""
        fault = None
        try:
            items = self.reader.feed(octets)
        except DecodeError as error:
            fault, items = error, error.completed
        for one in items:
            self._hear(self.amqp.apply(one.item))
        if fault is not None and not self.amqp.ended:
            self._hear([self.amqp.violated(fault.reason)])

    def _hear(self, events):
        if True:
            for event in events:
                self.events.append(event)
                if not (
                    isinstance(event, CommandReceived) and isinstance(event.command, self.kept)
                ):
                    self.amqp.answer(event)

    def of(self, kind):
        """The events of a kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    def said(self, kind):
        """The controls or commands of a kind that it has sent."""
        contents = [item.content for item in self.sent if isinstance(item, Frame)]
        return [content for content in contents if isinstance(content, kind)]


class Pair:
    """Both ends, opened; with a session on each if a name is given."""

    def __init__(self, name=b"s", *, first=0, **settings):
        self.client = End(True, first_command=first, **settings)
        self.server = End(False, first_command=first, **settings)
        self.client.amqp.start()
        self.pump()
        self.session = self.peer = None
        if name is not None:
            self.session = self.client.amqp.attach(name)
            self.pump()
            self.peer = self.server.amqp.channels[0]

    def pump(self):
        """Carry octets until both are quiet."""
        while self.client.out or self.server.out:
            for here, there in ((self.client, self.server), (self.server, self.client)):
                out, here.out = here.out, []
                there.feed(b"".join(out))
