"""A raw client: our own endpoint on a blocking socket, which can also be made to misbehave."""

import contextlib

import pytest

from tests.amqp10.byte_endpoint import ByteEndpoint
from tests.net.still import dial, now
from tests.patience import TIMEOUT_S
from workbench.amqp10.events import LinkAttaching
from workbench.amqp10.sasl import SaslClient
from workbench.amqp10.settings import ConnectionSettings


class RawClient:
    """A client whose every frame the test decides."""

    def __init__(self, broker, **settings):
        self.server = broker
        self.socket = dial(broker)
        self.received = []  # frames of the broker, as values
        self.events = []
        self.end = ByteEndpoint(
            container_id="raw",
            is_client=True,
            settings=ConnectionSettings(**settings),
            sasl=SaslClient(),
            on_received=self.received.append,
        )
        self.amqp = self.end.connection
        self.closed = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        """Write what the endpoint wants written."""
        data = self.end.data_to_send()
        if data:
            self.socket.sendall(data)

    def pump(self, until, timeout_s=TIMEOUT_S, *, strict=True):
        """Read and answer until the condition holds; tells whether it does."""
        deadline = now(self.server) + timeout_s
        self.flush()
        while not until() and not self.closed and now(self.server) < deadline:
            self.socket.settimeout(0.02)
            with contextlib.suppress(TimeoutError):
                data = b""
                with contextlib.suppress(ConnectionResetError):
                    data = self.socket.recv(65536)
                self.closed = not data
                for event in self.end.receive_data(data):
                    self.events.append(event)
                    if isinstance(event, LinkAttaching):
                        event.link.accept()
                    else:
                        self.amqp.answer(event)
            self.socket.settimeout(TIMEOUT_S)  # what is written is written whole
            with contextlib.suppress(OSError):
                self.flush()
        assert not strict or until(), f"not within {timeout_s} s; received {self.received[-3:]}"
        return until()

    def open(self):
        """Exchange headers, SASL and opens."""
        self.amqp.start()
        self.pump(lambda: self.amqp.opened)
        return self

    def session(self):
        """Begin a session."""
        session = self.amqp.begin()
        self.pump(lambda: "begin" in self.kinds())
        return session

    def sender(self, session, address="q", name="out"):
        """Attach a sender and wait for credit."""
        link = session.attach_sender(name, None, address)
        self.pump(lambda: link.credit > 0)
        return link

    def receiver(self, session, address="q", name="in"):
        """Attach a receiver, without credit."""
        link = session.attach_receiver(name, address, None)
        self.pump(lambda: link.attached)
        return link

    def kinds(self):
        """The kinds of the broker's frames so far."""
        return [kind(item) for item in self.received]

    def errors(self):
        """Conditions of the broker's errors so far."""
        found = [
            getattr(getattr(item, "performative", None), "error", None) for item in self.received
        ]
        return [str(getattr(error.condition, "value", error.condition)) for error in found if error]


def kind(item):
    """Name of a frame."""
    performative = getattr(item, "performative", None)
    if performative is None:
        return "heartbeat" if hasattr(item, "performative") else "protocol-header"
    return performative.NAME


@pytest.fixture
def raw_client():
    """Make raw clients; they are gone after the test."""
    with contextlib.ExitStack() as stack:
        yield lambda broker, **settings: stack.enter_context(RawClient(broker, **settings))
