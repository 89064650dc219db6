"""A client of AMQP 0-10 on a wire to a broker, whose every command a test sends."""

from workbench.amqp010 import commands as c
from workbench.amqp010.connection import Connection
from workbench.amqp010.events import CommandReceived, ExceptionReceived, ResultReceived
from workbench.amqp010.frame import Headers
from workbench.amqp010.structs import DeliveryProperties
from workbench.amqp010.values import SequenceSet
from workbench.frontends.amqp010 import accept
from workbench.sim import Wire


class Client:
    """A client whose commands a test sends; transfers that come are kept, and completed by hand."""

    vantage, from_peer, ledger_source = "client:c", "client", "own"

    def __init__(self, broker):
        self.events, self.messages, self.frames = [], [], []
        self.amqp = Connection(is_client=True, emit=lambda item: self.wire.send(self, item))
        name = f"c{len(broker.connections) + 1}"
        end = accept(broker, name)
        self.wire = Wire(broker.clock, self, end, latency_us=(1000, 1000), tap=broker.tap)
        self.clock, self.end = broker.clock, end
        end.connect(self.wire)
        self.amqp.start()
        self.rest()
        self.session = self.attach(name.encode())

    def attach(self, name):
        """One more session."""
        session = self.amqp.attach(name)
        self.rest()
        return session

    def apply(self, item):
        self.frames.append(item)
        return self.amqp.apply(item)

    def react(self, events):
        for event in events:
            self.events.append(event)
            if isinstance(event, CommandReceived) and isinstance(event.command, c.MessageTransfer):
                self.messages.append(event)
            else:
                self.amqp.answer(event)

    def scope(self, item, outgoing):
        return self.amqp.scope(item, outgoing)

    def rest(self):
        self.clock.run_until_rest()

    def do(self, command, session=None):
        """Send a command and wait until all is at rest; gives its result, if there is one."""
        number = (session or self.session).send(command)
        self.rest()
        found = [e.value for e in self.of(ResultReceived) if e.result_of == number]
        return found[0] if found else None

    def put(self, *keys, exchange="", size=1, session=None, **more):
        """Send a message for each key."""
        for key in keys:
            headers = Headers((DeliveryProperties(routing_key=key),))
            command = c.MessageTransfer(exchange, **more)
            (session or self.session).send(command, headers, b"x" * size)
        self.rest()

    def incomplete(self):
        """How many transfers are not complete, by a flush; held ones are not told."""
        self.session.flush()
        self.rest()
        return len(self.session.sent_incomplete)

    def subscribe(self, queue="q", destination="d", mode=None, accept=0, **credit):
        """Subscribe, with credit by unit."""
        self.session.send(c.MessageSubscribe(queue, destination, accept, 0))
        if mode is not None:
            self.session.send(c.MessageSetFlowMode(destination, mode))
        for unit, value in credit.items():
            self.session.send(c.MessageFlow(destination, c.CreditUnit[unit], value))
        self.rest()

    def ids(self):
        """Of the messages that came, as accept names them."""
        return [SequenceSet(((m.command_id, m.command_id),)) for m in self.messages]

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]

    def codes(self):
        """Of the exceptions that came."""
        return [event.code for event in self.of(ExceptionReceived)]
