"""python-qpid-proton's own reactor against the live broker."""

import pytest

from tests.clients.conftest import MESSAGES, PRESETS
from tests.patience import TIMEOUT_S

proton = pytest.importorskip("proton", reason="needs python-qpid-proton, which needs a compiler")

from proton import Message  # noqa: E402  (only where the library is)
from proton.handlers import MessagingHandler  # noqa: E402
from proton.reactor import AtLeastOnce, AtMostOnce, Container  # noqa: E402

CREDIT = 100
RETRY_S = [0, 0.05, 0.1, 0.2]


class Client(MessagingHandler):
    """A handler that gives up when nothing has happened for a while, and lets no error pass."""

    def __init__(self, url, **more):
        super().__init__(**more)
        self.url = url
        self.errors = []
        self.opened = 0
        self.news = self.last_news = 0

    def on_start(self, event):
        self.timer = event.container.schedule(TIMEOUT_S, self)
        self.connection = event.container.connect(
            self.url, allowed_mechs="ANONYMOUS", reconnect=RETRY_S
        )
        self.begin(event.container)

    def begin(self, container):
        """Make the links."""

    def on_connection_opened(self, event):
        self.opened += 1
        self.news += 1

    def on_timer_task(self, event):
        if self.news == self.last_news:
            self.errors.append(f"nothing has come for {TIMEOUT_S} s")
            event.container.stop()
            return
        self.last_news = self.news
        self.timer = event.container.schedule(TIMEOUT_S, self)

    def on_link_error(self, event):
        self.errors.append(str(event.link.remote_condition))

    def on_session_error(self, event):
        self.errors.append(str(event.session.remote_condition))

    def on_connection_error(self, event):
        self.errors.append(str(event.connection.remote_condition))

    def done(self, event):
        """Close; the reactor ends when all is said."""
        self.connection.close()
        self.timer.cancel()

    def run(self):
        """Run to the end; errors fail the test."""
        Container(self).run()
        assert self.errors == []
        return self


class Sender(Client):
    """Send numbers; each is sent again until it is accepted."""

    def __init__(self, url, address, numbers, *, settled=False, on_accepted=None):
        super().__init__(url)
        self.address, self.settled = address, settled
        self.waiting = list(reversed(numbers))
        self.total = len(numbers)
        self.unsettled = {}
        self.accepted = []
        self.most_credit = 0
        self.on_each = on_accepted or (lambda count: None)

    def begin(self, container):
        mode = AtMostOnce() if self.settled else AtLeastOnce()
        container.create_sender(self.connection, self.address, options=mode)

    def on_sendable(self, event):
        self.news += 1
        self.most_credit = max(self.most_credit, event.sender.credit)
        while event.sender.credit > 0 and self.waiting:
            number = self.waiting.pop()
            delivery = event.sender.send(Message(body=number))
            if not self.settled:
                self.unsettled[delivery.tag] = number
        if self.settled and not self.waiting:
            self.done(event)

    def on_accepted(self, event):
        self.news += 1
        self.accepted.append(self.unsettled.pop(event.delivery.tag))
        if len(self.accepted) == self.total:
            self.done(event)
        else:
            self.on_each(len(self.accepted))

    def on_rejected(self, event):
        self.errors.append("rejected")

    def on_released(self, event):
        self.errors.append("released")

    def on_disconnected(self, event):
        # Whether these arrived nobody knows: at least once means to send them again.
        self.waiting += sorted(self.unsettled.values(), reverse=True)
        self.unsettled.clear()


class Receiver(Client):
    """Receive and accept until every number has come; Proton tops the credit up."""

    def __init__(self, url, address, total, *, settled=False, on_each=None):
        super().__init__(url, prefetch=CREDIT)
        self.address, self.total, self.settled = address, total, settled
        self.bodies = []
        self.different = set()
        self.on_each = on_each or (lambda count: None)

    def begin(self, container):
        mode = AtMostOnce() if self.settled else AtLeastOnce()
        container.create_receiver(self.connection, self.address, options=mode)

    def on_message(self, event):
        self.news += 1
        self.bodies.append(event.message.body)
        self.different.add(event.message.body)
        if len(self.different) == self.total:
            self.accept(event.delivery)
            self.done(event)
        else:
            self.on_each(len(self.bodies))


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_proton_sends_and_receives_ten_thousand_messages_in_order(serve, preset):
    """Unsettled, with credit topped up at both ends; each is accepted and none is left."""
    broker = serve(preset)
    address = broker.declare("orders")
    sender = Sender(broker.url, address, range(MESSAGES)).run()
    # One disposition settles many, and Proton tells of these in an order of its own: what was
    # sent later is told of earlier by no more than may be unconfirmed, a grant twice over.
    assert sorted(sender.accepted) == list(range(MESSAGES))
    ahead = [number - place for place, number in enumerate(sender.accepted)]
    assert max(ahead) < 2 * sender.most_credit
    assert sender.most_credit == 170
    receiver = Receiver(broker.url, address, MESSAGES).run()
    assert receiver.bodies == list(range(MESSAGES))
    broker.wait_for("orders", "terminal", MESSAGES)
    assert broker.count("orders") == 0


def test_proton_sends_and_receives_settled_messages(serve):
    """At most once: no disposition either way."""
    broker = serve()
    address = broker.declare("orders")
    Sender(broker.url, address, range(MESSAGES), settled=True).run()
    receiver = Receiver(broker.url, address, MESSAGES, settled=True).run()
    assert receiver.bodies == list(range(MESSAGES))


class Drainer(Client):
    """Grant more than there is, with the drain flag."""

    def __init__(self, url, address, credit):
        super().__init__(url, prefetch=0)
        self.address, self.credit = address, credit
        self.bodies = []
        self.left = None

    def begin(self, container):
        container.create_receiver(self.connection, self.address)

    def on_link_opened(self, event):
        event.receiver.drain(self.credit)

    def on_message(self, event):
        self.bodies.append(event.message.body)

    def on_link_flow(self, event):
        if event.link.draining() or self.left is not None:
            return
        self.left = event.link.drained()
        self.done(event)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("there", [0, 3])
def test_proton_drains_what_is_there_and_gets_the_rest_of_its_credit_back(serve, preset, there):
    """drain of 10: `there` messages come, and the flow that gives 10 - `there` credits back."""
    broker = serve(preset)
    address = broker.declare("orders")
    if there:
        Sender(broker.url, address, range(there)).run()
    drainer = Drainer(broker.url, address, 10).run()
    assert drainer.bodies == list(range(there))
    assert drainer.left == 10 - there


def test_proton_reconnects_and_no_accepted_message_is_lost(serve):
    """Connections are cut twice while sending and twice while receiving; Proton comes back."""
    broker = serve()
    address = broker.declare("orders")
    cuts = iter((500, 1_500))
    at = next(cuts)

    def cut(count):
        nonlocal at
        if at is not None and count >= at:
            broker.cut()
            at = next(cuts, None)

    sender = Sender(broker.url, address, range(2_000), on_accepted=cut).run()
    assert sender.opened == 3
    assert sorted(sender.accepted) == list(range(2_000))
    cuts = iter((400, 1_200))
    at = next(cuts)
    receiver = Receiver(broker.url, address, 2_000, on_each=cut).run()
    assert receiver.opened == 3
    assert set(receiver.bodies) == set(range(2_000))
