"""A python-qpid-proton engine, pumped in memory by octets against a `ByteEndpoint` of ours."""

import proton

from workbench.amqp10.events import LinkAttaching

from .byte_endpoint import ByteEndpoint

CHUNK = 65536


class Bridge:
    """Ours and Proton's, with the octets of both on their way.

    Args:
        we_open: ours is the client.
        settings: `ConnectionSettings` of ours.
        session_settings: `SessionSettings` of ours.
        max_frame_size: of Proton's.
        incoming_capacity: octets that Proton's sessions take.
        terms: for `accept` of links that Proton attaches.
    """

    def __init__(
        self,
        *,
        we_open,
        settings=None,
        session_settings=None,
        max_frame_size=None,
        incoming_capacity=None,
        terms=None,
    ):
        self.ours = ByteEndpoint(
            container_id="ours",
            is_client=we_open,
            settings=settings,
            session_settings=session_settings,
        )
        self.events = []
        self.terms = terms or {}
        self.transport = proton.Transport(
            proton.Transport.SERVER if we_open else proton.Transport.CLIENT
        )
        if max_frame_size is not None:
            self.transport.max_frame_size = max_frame_size
        self.connection = proton.Connection()
        self.connection.container = "proton"
        self.collector = proton.Collector()
        self.connection.collect(self.collector)
        self.transport.bind(self.connection)
        self.incoming_capacity = incoming_capacity
        self.bodies = []
        self.deliveries = []
        self.aborted = 0
        if we_open:
            self.ours.connection.start()
        else:
            self.connection.open()
        self.pump()

    def open_session(self):
        """A session that Proton begins."""
        session = self.connection.session()
        if self.incoming_capacity is not None:
            session.incoming_capacity = self.incoming_capacity
        session.open()
        return session

    def pump(self):
        """Carries octets both ways until both are quiet, answering on both sides."""
        while True:
            data = self.ours.data_to_send()
            moved = bool(data)
            while data:
                room = self.transport.capacity()
                if room < 0:
                    break
                self.transport.push(data[:room])
                data = data[room:]
                self._mirror()
            self._mirror()
            while (pending := self.transport.pending()) > 0:
                moved = True
                octets = self.transport.peek(min(pending, CHUNK))
                self.transport.pop(len(octets))
                for event in self.ours.receive_data(octets):
                    self.events.append(event)
                    if isinstance(event, LinkAttaching):
                        event.link.accept(**self.terms)
                    else:
                        self.ours.connection.answer(event)
            if not moved:
                return

    def _mirror(self):
        """Proton's side answers what ours has opened, and takes what has arrived."""
        while self.collector.peek() is not None:
            self.collector.pop()
        if self._asked(self.connection):
            self.connection.open()
        session = self.connection.session_head(proton.Endpoint.REMOTE_ACTIVE)
        while session is not None:
            if self._asked(session):
                if self.incoming_capacity is not None:
                    session.incoming_capacity = self.incoming_capacity
                session.open()
            session = session.next(proton.Endpoint.REMOTE_ACTIVE)
        link = self.connection.link_head(proton.Endpoint.REMOTE_ACTIVE)
        while link is not None:
            if self._asked(link):
                link.source.copy(link.remote_source)
                link.target.copy(link.remote_target)
                link.open()
            if link.is_receiver:
                self._take(link)
            link = link.next(proton.Endpoint.REMOTE_ACTIVE)

    def _asked(self, endpoint):
        return endpoint.state & proton.Endpoint.LOCAL_UNINIT and (
            endpoint.state & proton.Endpoint.REMOTE_ACTIVE
        )

    def _take(self, link):
        # advance() before settle(): settling the current delivery would advance by itself.
        while (delivery := link.current) is not None and not delivery.partial:
            if delivery.aborted:
                self.aborted += 1
                link.advance()
                delivery.settle()
                continue
            if not delivery.readable:
                return
            self.bodies.append(link.recv(delivery.pending))
            link.advance()
            if delivery.settled:
                delivery.settle()
            else:
                self.deliveries.append(delivery)

    def proton_link(self):
        """The one link that Proton knows."""
        return self.connection.link_head(proton.Endpoint.REMOTE_ACTIVE)
