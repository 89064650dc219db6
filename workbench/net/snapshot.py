"""A picture of a broker as it is now: queues, links and their credit, and alarms; read, never set.

Where the management interface of a RabbitMQ is on, it is asked over HTTP, with GET alone. Where it
is not, AMQP 0-9-1 tells of each queue that is named how many messages are ready and how many
consumers it has (`queue.declare` with `passive`). What cannot be read is listed. Names of users,
hosts and connections are not kept, nor is any message.
"""

from __future__ import annotations

import base64
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from workbench.amqp091.connection import Connection
from workbench.amqp091.errors import DecodeError, LocalProtocolError, ReplyCode
from workbench.amqp091.events import Event, MethodReceived
from workbench.amqp091.frame import FrameReader, encode_item
from workbench.amqp091.methods import (
    ChannelClose,
    ChannelCloseOk,
    ChannelOpenOk,
    ConnectionOpenOk,
    QueueDeclare,
    QueueDeclareOk,
)
from workbench.amqp091.settings import CLIENT_CAPABILITIES, ConnectionSettings
from workbench.notebook import PlainError

HTTP_PORT, AMQP_PORT = 15672, 5672
UNTOLD = (OSError, ValueError, RecursionError, HTTPException)
"""What comes of asking over HTTP where nobody answers, or somebody else does."""
MOST_OCTETS = 20_000_000
MOST_CONNECTIONS = 50
"""Whose sessions are asked for."""


class SnapshotError(PlainError):
    """The broker cannot be looked at; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueNow:
    """A queue.

    Attributes:
        name: of the queue.
        kind: `classic`, `quorum`, `stream`; empty where nobody tells.
        ready: messages that no consumer has.
        unacknowledged: that a consumer has and has not settled; None where nobody tells.
        consumers: how many consume.
    """

    name: str
    kind: str = ""
    ready: int
    unacknowledged: int | None = None
    consumers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkNow:
    """A link of AMQP 1.0, or a consumer of 0-9-1, as the broker's end has it.

    Attributes:
        connection: `c1`, `c2`, ...: names of connections tell of hosts.
        sends: the broker sends messages over it.
        address: its queue or other address.
        credit: link-credit, or the prefetch of a consumer (0: no limit).
        delivery_count: of a link; None of a consumer.
        window: the session's window in the direction of its messages; None of a consumer.
    """

    connection: str
    sends: bool
    address: str
    credit: int | None
    delivery_count: int | None = None
    window: int | None = None


@dataclass(slots=True)
class Snapshot:
    """What was read.

    Attributes:
        broker: product and version, as it tells them.
        queues: in the order in which they were told.
        links: likewise.
        alarms: resources that run short; None where nobody tells.
        unread: what could not be read, and why.
    """

    broker: str = ""
    queues: list[QueueNow] = field(default_factory=list)
    links: list[LinkNow] = field(default_factory=list)
    alarms: list[str] | None = None
    unread: list[str] = field(default_factory=list)

    def advice(self) -> list[str]:
        """What to look at, worst first."""
        found = [
            f"An alarm is on ({name}): nobody's messages are taken." for name in self.alarms or ()
        ]
        for queue in self.queues:
            held = queue.unacknowledged or 0
            if queue.ready and not queue.consumers:
                found.append(f"Queue {queue.name}: {queue.ready} ready and nobody consumes.")
            elif not queue.ready and held >= 1000:
                found.append(
                    f"Queue {queue.name} looks empty, and its consumers hold {held}: a stalled"
                    " consumer with a huge prefetch hides a backlog."
                )
            elif queue.ready and held:
                found.append(
                    f"Queue {queue.name}: {queue.ready} wait while {held} are not settled: the"
                    " consumers' prefetch or credit is used up, or they are slow."
                )
            elif queue.ready:
                found.append(
                    f"Queue {queue.name}: {queue.ready} ready with {queue.consumers} consumers:"
                    " look whether these grant credit."
                )
        for link in self.links:
            if link.credit == 0 and link.delivery_count is not None:
                who = "its receiver has granted none" if link.sends else "the broker grants none"
                found.append(f"{link.connection}, {link.address}: link-credit 0: {who}.")
            if link.window == 0:
                found.append(f"{link.connection}, {link.address}: the session's window is closed.")
        return found


def snapshot(
    url: str, queues: Sequence[str] = (), *, http: str = "", timeout_s: float = 10.0
) -> Snapshot:
    """Look at a broker.

    Args:
        url: `amqp://user:password@host:port/virtual-host`; what is left out is RabbitMQ's default.
        queues: names of those to ask for by AMQP, where there is no management interface.
        http: address of the management interface; the broker's host and port 15672 if empty.
        timeout_s: for each answer, in seconds.

    Raises:
        SnapshotError: if neither way leads to the broker; the text says why.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or AMQP_PORT
        (parts.hostname or "").encode("idna")
    except ValueError:  # whose text may hold a password
        raise SnapshotError("no amqp:// address: its host or port can be none") from None
    if parts.scheme != "amqp" or not parts.hostname:
        raise SnapshotError(f"{parts.scheme or url!r:.40} is no amqp:// address")
    user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
    host = unquote(parts.path[1:]) if len(parts.path) > 1 else "/"
    found = Snapshot()
    try:
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        base = http or f"http://{name}:{HTTP_PORT}"
        _by_http(found, base, user, password, host, timeout_s)
    except UNTOLD as error:
        reason = getattr(error, "reason", None) or error
        found.unread.append(f"the management interface: {reason}")
        found.unread.append(
            "links, their credit, windows and alarms: AMQP does not tell of others'"
        )
        if not queues:
            found.unread.append("names of queues: AMQP lists none; name those to ask for")
        settings = ConnectionSettings(
            properties={"product": "workbench snapshot", "capabilities": CLIENT_CAPABILITIES},
            response=b"\0%s\0%s" % (user.encode(), password.encode()),
            virtual_host=host,
        )
        try:
            with socket.create_connection((parts.hostname, port), timeout_s) as end:
                _Asking(end, settings, queues, found).ask()
        except OSError as fault:
            raise SnapshotError(f"{parts.hostname}: {fault.strerror or fault}") from None
        except DecodeError as fault:
            raise SnapshotError(
                f"{parts.hostname}: speaks no AMQP 0-9-1: {fault.message}"
            ) from None
        except LocalProtocolError as fault:  # a name is too long
            raise SnapshotError(f"{parts.hostname}: {fault.message}") from None
    return found


# -- over HTTP ----------------------------------------------------------------------------------


def _by_http(
    found: Snapshot, base: str, user: str, password: str, host: str, timeout_s: float
) -> None:
    """What RabbitMQ's management interface tells."""
    key = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")

    def get(path: str, *, several: bool = True) -> Any:
        request = urllib.request.Request(f"{base.rstrip('/')}/api/{path}")
        # It is for this server alone, and for none that it sends us on to.
        request.add_unredirected_header("Authorization", f"Basic {key}")
        if not request.full_url.startswith(("http://", "https://")):
            raise ValueError(f"{base!r:.60} is no http:// address")
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                told = json.loads(answer.read(MOST_OCTETS))
        except urllib.error.HTTPError as error:
            error.close()  # it is the answer, too
            raise
        records = told if several and isinstance(told, list) else [told]
        if not all(isinstance(one, dict) for one in records):
            raise ValueError(f"{base!r:.60} does not answer as RabbitMQ does")
        return records if several else told

    about = get("overview", several=False)
    queues = get(f"queues/{quote(host, safe='')}")  # before a word is kept: else AMQP is asked
    name = about.get("product_name") or "RabbitMQ"
    found.broker = f"{name} {about.get('product_version') or about.get('rabbitmq_version', '')}"
    for queue in queues:
        found.queues.append(
            QueueNow(
                name=str(queue.get("name")),
                kind=str(queue.get("type", "")),
                ready=_number(queue.get("messages_ready")) or 0,
                unacknowledged=_number(queue.get("messages_unacknowledged")) or 0,
                consumers=_number(queue.get("consumers")) or 0,
            )
        )

    def optional(what: str, path: str) -> Any:
        try:
            return get(path)
        except UNTOLD as error:
            found.unread.append(f"{what}: {error}")
            return None

    nodes = optional("alarms", "nodes")
    if nodes is not None:
        kinds = {"memory": "mem_alarm", "disk": "disk_free_alarm"}
        found.alarms = [kind for kind, key in kinds.items() if any(one.get(key) for one in nodes)]
    known: dict[str, str] = {}
    for connection in optional("connections", "connections") or ():
        name = str(connection.get("name"))
        known[name] = f"c{len(known) + 1}"
        if "1-0" not in str(connection.get("protocol", "")).replace(".", "-").replace(",", "-"):
            continue
        if len(known) > MOST_CONNECTIONS:
            found.unread.append(f"sessions of more than {MOST_CONNECTIONS} connections")
            break
        path = f"connections/{quote(name, safe='')}/sessions"
        label = known[name]
        for session in optional(f"sessions of {label} (RabbitMQ 4.1 or later tells)", path) or ():
            _links(found, label, session)
    for consumer in optional("consumers", f"consumers/{quote(host, safe='')}") or ():
        name = str(_map(consumer.get("channel_details")).get("connection_name", ""))
        queue = str(_map(consumer.get("queue")).get("name", ""))
        found.links.append(
            LinkNow(
                connection=known.get(name, "?"),
                sends=True,
                address=queue,
                credit=_number(consumer.get("prefetch_count")),
            )
        )


def _links(found: Snapshot, connection: str, session: Any) -> None:
    """The links of a session, with the window of their direction."""
    for key, sends, address, window in (
        ("incoming_links", False, "target_address", "incoming_window"),
        ("outgoing_links", True, "source_address", "remote_incoming_window"),
    ):
        told = session.get(key)
        for link in map(_map, told if isinstance(told, list) else ()):
            found.links.append(
                LinkNow(
                    connection=connection,
                    sends=sends,
                    address=str(link.get("queue_name") or link.get(address) or ""),
                    credit=_number(link.get("credit")),
                    delivery_count=_number(link.get("delivery_count")),
                    window=_number(session.get(window)),
                )
            )


def _number(told: Any) -> int | None:
    """A count; None where something else is told."""
    return told if type(told) is int else None


def _map(told: Any) -> dict[str, Any]:
    """A record; an empty one where something else is told."""
    return told if isinstance(told, dict) else {}


# -- over AMQP 0-9-1 ----------------------------------------------------------------------------


class _Asking:
    """A connection that asks for queues by name, and closes."""

    def __init__(
        self,
        end: socket.socket,
        settings: ConnectionSettings,
        queues: Sequence[str],
        found: Snapshot,
    ) -> None:
        self._socket = end
        self._queues = list(queues)
        self._found = found
        self._reader = FrameReader(mid_stream=True)
        self._amqp = Connection(is_client=True, emit=self._emit, settings=settings)

    def ask(self) -> None:
        """Talk until everything is asked."""
        self._amqp.start()
        while not self._amqp.ended:
            data = self._socket.recv(65_536)
            if not data:
                if self._amqp.opened or not self._found.broker:
                    raise OSError("the broker ended the connection: wrong user or virtual host?")
                return
            for raw in self._reader.feed(data):
                for event in self._amqp.apply(raw.item):
                    self._amqp.answer(event)
                    self._heard(event)
                self._reader.frame_max = self._amqp.frame_max
        said = self._amqp.error
        if said is not None and said.reply_code != ReplyCode.REPLY_SUCCESS:
            if not self._found.broker:
                raise OSError(said.reply_text)
            self._found.unread += [f"queue {name}: {said.reply_text}" for name in self._queues]

    def _emit(self, item: Any) -> None:
        self._socket.sendall(encode_item(item))

    def _heard(self, event: Event) -> None:
        match event:
            case MethodReceived(method=ConnectionOpenOk()):
                told = self._amqp.peer_properties or {}
                name, version = told.get("product", "a broker"), told.get("version", "")
                self._found.broker = f"{name} {version}".strip()
                self._next()
            case MethodReceived(method=ChannelOpenOk(), channel=channel) if channel is not None:
                channel.send(QueueDeclare(queue=self._queues[0], passive=True))
            case MethodReceived(method=QueueDeclareOk() as told_of):
                self._found.queues.append(
                    QueueNow(
                        name=told_of.queue,
                        ready=told_of.message_count,
                        consumers=told_of.consumer_count,
                    )
                )
                self._done()
            case MethodReceived(method=ChannelClose(reply_text=text)):
                self._found.unread.append(f"queue {self._queues[0]}: {text}")
                self._done()
            case MethodReceived(method=ChannelCloseOk()):
                pass

    def _done(self) -> None:
        self._queues.pop(0)
        self._next()

    def _next(self) -> None:
        # A channel for each: one that names a queue that is not there is closed.
        if self._queues:
            self._amqp.open_channel()
        else:
            self._amqp.close()
