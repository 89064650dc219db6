"""Two connections and a visible pump between them.

Nothing moves until somebody pumps, so a test can look at both ends while a frame is in flight.
"""

from collections import deque

from workbench.amqp10.connection import Connection
from workbench.amqp10.events import ProtocolViolation
from workbench.amqp10.frame import Frame
from workbench.amqp10.settings import ConnectionSettings, SessionSettings


class Side:
    """One end: its connection, what it has sent and heard, and what is on its way to the peer."""

    def __init__(self, name, is_client, settings, session_settings, sasl):
        self.name = name
        self.connection = Connection(
            container_id=name,
            is_client=is_client,
            emit=self._emit,
            settings=settings,
            session_settings=session_settings,
            sasl=sasl,
        )
        self.flying = deque()
        self.sent = []
        self.events = []
        self.scopes = []

    def _emit(self, item):
        self.scopes.append(self.connection.scope(item, True))
        self.flying.append(item)
        self.sent.append(item)

    def frames(self, kind=None):
        """Performatives sent so far, all or of one kind."""
        found = [item.performative for item in self.sent if isinstance(item, Frame)]
        return [one for one in found if kind is None or isinstance(one, kind)]

    def heard(self, kind):
        """Events of one kind so far."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def violations(self):
        """What the peer did wrong so far."""
        return self.heard(ProtocolViolation)


class Pair:
    """A client and a server.

    Args:
        client: settings of the client's connection.
        server: of the server's.
        client_session: settings of the sessions the client begins.
        server_session: of those the server accepts.
        sasl: of the client and of the server.
        answers: each event is answered as soon as it is heard.
        start: the opens are exchanged.
    """

    side = Side

    def __init__(
        self,
        *,
        client=None,
        server=None,
        client_session=None,
        server_session=None,
        sasl=(None, None),
        answers=True,
        start=True,
    ):
        client, server = client or ConnectionSettings(), server or ConnectionSettings()
        client_session = client_session or SessionSettings()
        server_session = server_session or SessionSettings()
        self.client = self.side("client", True, client, client_session, sasl[0])
        self.server = self.side("server", False, server, server_session, sasl[1])
        self.answers = answers
        if start:
            self.client.connection.start()
            self.pump()

    def peer_of(self, side):
        """The other end."""
        return self.server if side is self.client else self.client

    def deliver(self, side, count=1):
        """Lets frames that `side` has sent arrive."""
        peer = self.peer_of(side)
        for _ in range(count):
            events = peer.connection.apply(side.flying.popleft())
            peer.events.extend(events)
            if self.answers:
                for event in events:
                    peer.connection.answer(event)

    def inject(self, side, performative, payload=b"", channel=0):
        """Lets a frame arrive that `side` has not sent; gives the events."""
        peer = self.peer_of(side)
        events = peer.connection.apply(Frame(channel, performative, payload))
        peer.events.extend(events)
        return events

    def pump(self):
        """Carries frames both ways until both ends are quiet."""
        while self.client.flying or self.server.flying:
            for side in (self.client, self.server):
                if side.flying:
                    self.deliver(side)


class LinkPair(Pair):
    """A pair with a session and one link over which the server sends, or the client.

    Args:
        server_sends: which of them.
        credit: that the receiver has granted.
        sender_terms: of the sending link.
        receiver_terms: of the receiving one.
        answers: each event is answered, once the link is attached.
        **options: of the pair.

    Attributes:
        sender: the sending link, on the side `sending`.
        receiver: the receiving link, on the side `receiving`.
    """

    def __init__(
        self,
        *,
        server_sends=True,
        credit=None,
        sender_terms=None,
        receiver_terms=None,
        answers=True,
        **options,
    ):
        super().__init__(**options)
        sender_terms, receiver_terms = sender_terms or {}, receiver_terms or {}
        self.client_session = self.client.connection.begin()
        self.pump()
        (self.server_session,) = self.server.connection.sessions
        self.answers = False
        if server_sends:
            self.sending, self.receiving = self.server, self.client
            self.receiver = self.client_session.attach_receiver("l", "q", **receiver_terms)
        else:
            self.sending, self.receiving = self.client, self.server
            self.sender = self.client_session.attach_sender("l", None, "q", **sender_terms)
        self.pump()
        (link,) = self.server_session.links
        if server_sends:
            self.sender = link
            link.accept(**sender_terms)
        else:
            self.receiver = link
            link.accept(**receiver_terms)
        self.pump()
        self.answers = answers
        if credit is not None:
            self.receiver.grant(credit)
            self.pump()

    @property
    def sender_session(self):
        """The session at the sender's end."""
        return self.sender.session

    @property
    def receiver_session(self):
        """The session at the receiver's end."""
        return self.receiver.session

    def link_credit(self):
        """(as the sender sees it, as the receiver sees it)."""
        return self.sender.credit, self.receiver.credit

    def delivery_count(self):
        """(as the sender sees it, as the receiver sees it)."""
        return self.sender.delivery_count, self.receiver.delivery_count
