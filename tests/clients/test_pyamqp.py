"""The AMQP 1.0 library inside azure-servicebus, pure Python, with a codec of its own.

Its `link.flow` writes any credit and the drain and echo flags, which Proton hides; what comes in is
seen by looking at the same method that the library calls for every flow.

As with RabbitMQ, a receiver of it grants nothing by itself: the attach that answers it has no
target, because the client's own has no meaning to a broker, and the library takes that for a
refusal. The link is there all the same, and the first `flow` starts it.
"""

import time

import pytest

from tests.clients.conftest import MESSAGES, PRESETS
from tests.patience import TIMEOUT_S

pytest.importorskip("azure.servicebus._pyamqp", reason="needs azure-servicebus")

from azure.servicebus._pyamqp._connection import Connection
from azure.servicebus._pyamqp.constants import (
    LinkState,
    SenderSettleMode,
    SessionState,
)
from azure.servicebus._pyamqp.error import AMQPConnectionError
from azure.servicebus._pyamqp.message import Message
from azure.servicebus._pyamqp.outcomes import Accepted
from azure.servicebus._pyamqp.sasl import SASLAnonymousCredential

CREDIT = 100
IN_FLIGHT = 80  # unsettled sends at once: its list of them is searched for every disposition


@pytest.fixture
def connect():
    """Make clients; whatever is left of their sockets is closed after the test."""
    clients = []

    def make(broker):
        clients.append(Client(broker))
        return clients[-1]

    yield make
    for client in clients:
        client.connection._transport.close()


class Client:
    """One connection with one session."""

    def __init__(self, broker):
        self.connection = Connection(
            broker.url, sasl_credential=SASLAnonymousCredential(), use_tls=False
        )
        self.connection.open()
        self.session = self.connection.create_session(
            incoming_window=5_000,
            outgoing_window=10 * MESSAGES,  # it only ever falls, and below 0 no flow can be written
        )
        self.session.begin()
        self.until(lambda: self.session.state is SessionState.MAPPED)

    def until(self, condition):
        """Work until a condition holds."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {TIMEOUT_S} s"
            self.connection.listen()

    def close(self):
        self.connection.close()

    def sender(self, address):
        """Attach a sender and wait for its credit."""
        link = self.session.create_sender_link(
            address, send_settle_mode=SenderSettleMode.Unsettled, link_credit=0
        )
        link.attach()
        self.until(lambda: link.get_state() is LinkState.ATTACHED and link.current_link_credit > 0)
        return link

    def receiver(self, address, taken):
        """Attach a receiver without credit; the bodies of what comes are put into `taken`."""

        def take(frame, message):
            taken.append(int(b"".join(message.data)))
            # To return the outcome is not enough: an accepted of this library counts as false.
            link.send_disposition(
                first_delivery_id=frame[1],
                delivery_tag=frame[2],
                settled=True,
                delivery_state=Accepted(),
            )

        link = self.session.create_receiver_link(address, on_transfer=take, link_credit=0)
        link.attach()
        self.until(lambda: link.get_state() is not LinkState.ATTACH_SENT)
        return link

    def flows(self, link):
        """Every flow that comes for a link from now on, as fields in the order of the frame."""
        seen = []
        of_library = link._incoming_flow

        def look(frame):
            seen.append(frame)
            return of_library(frame)

        link._incoming_flow = look
        return seen

    def send(self, link, numbers):
        """Send numbers; gives those that the broker has accepted."""
        accepted = []
        waiting = 0

        def settled(number):
            def note(reason, state):
                nonlocal waiting
                waiting -= 1
                if state is not None and "accepted" in state:
                    accepted.append(number)

            return note

        def room():
            return link.current_link_credit > 0 and waiting < IN_FLIGHT

        for number in numbers:
            self.until(room)
            waiting += 1
            message = Message(data=[b"%d" % number])
            link.send_transfer(message, on_send_complete=settled(number))
        self.until(lambda: waiting == 0)
        return accepted

    def receive(self, link, taken, until):
        """Receive until the condition holds; credit is set anew when half of it is used."""
        granted_at = len(taken)
        link.flow(link_credit=CREDIT)

        def enough():
            nonlocal granted_at
            if len(taken) - granted_at >= CREDIT // 2:
                granted_at = len(taken)
                link.flow(link_credit=CREDIT)
            return until()

        self.until(enough)


@pytest.mark.slow
def test_pyamqp_sends_and_receives_ten_thousand_messages_in_order(serve, connect):
    """Unsettled, credit topped up by its own `flow`; each is accepted and none is left.

    Not under rmq4.0, whose delivery-counts begin just below 2^32: the library never wraps its own.
    """
    broker = serve()
    address = broker.declare("orders")
    client = connect(broker)
    assert client.send(client.sender(address), range(MESSAGES)) == list(range(MESSAGES))
    taken = []
    receiver = client.receiver(address, taken)
    client.receive(receiver, taken, lambda: len(taken) == MESSAGES)
    assert taken == list(range(MESSAGES))
    broker.wait_for("orders", "terminal", MESSAGES)
    client.close()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("there", [0, 3])
def test_pyamqp_drains_and_reads_how_much_credit_came_back(serve, connect, preset, there):
    """drain=True with credit 10: what is there, then one flow with credit 0 and count + 10."""
    broker = serve(preset)
    address = broker.declare("orders")
    client = connect(broker)
    if there:
        client.send(client.sender(address), range(there))
    taken = []
    receiver = client.receiver(address, taken)
    flows = client.flows(receiver)
    begin = receiver.delivery_count
    receiver.flow(link_credit=10, drain=True)
    client.until(lambda: flows != [])
    assert taken == list(range(there))
    delivery_count, credit, available, drain = flows[0][5:9]
    assert (delivery_count - begin) % 2**32 == 10
    assert (credit, available, drain) == (0, 0, True)
    client.close()


def test_pyamqp_asks_by_echo_how_many_messages_are_available(serve, connect):
    """echo=True: a flow comes back with what is left of the credit, and `available`."""
    broker = serve()
    address = broker.declare("orders")
    client = connect(broker)
    client.send(client.sender(address), range(20))
    taken = []
    receiver = client.receiver(address, taken)
    flows = client.flows(receiver)
    receiver.flow(link_credit=5, echo=True)
    client.until(lambda: flows != [])
    assert taken == list(range(5))
    assert flows[0][6:8] == [0, 15]
    client.close()


def test_pyamqp_connects_anew_after_a_cut_and_no_accepted_message_is_lost(serve, connect):
    """The library notices the cut by an error; a new connection goes on where it was."""
    broker = serve()
    address = broker.declare("orders")
    accepted = []
    for half in (range(500), range(500, 1_000)):
        client = connect(broker)
        accepted += client.send(client.sender(address), half)
        broker.cut()
        with pytest.raises(AMQPConnectionError):
            client.until(lambda: False)
    assert accepted == list(range(1_000))
    taken = []
    client = connect(broker)
    receiver = client.receiver(address, taken)
    client.receive(receiver, taken, lambda: len(taken) >= 300)
    broker.cut()
    client = connect(broker)
    receiver = client.receiver(address, taken)
    client.receive(receiver, taken, lambda: set(taken) == set(accepted))
    client.close()
