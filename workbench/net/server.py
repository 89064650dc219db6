"""Live servers, each in a thread of its own, so that a notebook or a program goes on beside it.

A notebook's kernel has an event loop that stands still while a cell runs; a client in that cell
would wait for ever for a broker on the same loop. So a server has its own thread and loop, and
what a person asks of it is handed over.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import ssl
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workbench import presets
from workbench.machine import raise_open_files
from workbench.presets import Preset
from workbench.sim import WireError

from .frozen import FrozenWire, WirePicture
from .limits import Limits
from .listener import Listener
from .recording import Recording
from .socket_server import LOOPBACK, ListenError, SocketServer
from .watching import Watch

T = TypeVar("T")
ServerT = TypeVar("ServerT", bound=SocketServer)
START_TIMEOUT_S = 10.0
LOOPBACKS = frozenset({LOOPBACK, "::1", "localhost"})
_RUNNING: weakref.WeakSet[LiveServer[Any]] = weakref.WeakSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One moment of a server.

    Attributes:
        connections: names of those that are open, in order of opening.
        wire: of the connection that was asked for; None if no wire can be shown.
        rows: the trace so far.
    """

    connections: list[str]
    wire: WirePicture | None
    rows: list[Any]


class ServerHandle(ABC, Generic[ServerT]):
    """What a person may ask of a socket server, from any thread.

    Args:
        recording: keeps the trace; None records nothing.

    Attributes:
        listener: the socket server; to be used on its own thread alone, see `ask`.
    """

    listener: ServerT

    def __init__(self, recording: Recording | None = None) -> None:
        self.recording = recording
        self._watches: list[Watch] = []

    @abstractmethod
    def ask(self, question: Callable[[], T]) -> T:
        """Call a function on the server's thread and wait for its result.

        Raises:
            ListenError: if the server is stopped.
        """

    def news(self) -> list[str]:
        """What happened to connections, and to the trace, since the last call, in words."""
        fresh = []
        with contextlib.suppress(IndexError):
            while True:
                fresh.append(self.listener.news.popleft())
        if self.recording is not None and self.recording.spool is not None:
            fresh += self.recording.spool.news()
        return fresh

    # -- wires ------------------------------------------------------------------------------

    def wire(self, connection: str | None = None) -> FrozenWire:
        """The wire of a connection, to be held and let go by hand.

        Args:
            connection: its name, `c1`, `c2`, ...; None takes the newest that has sent something,
                so that whatever only knocks at the port is not mistaken for the client.

        Raises:
            WireError: if there is no such connection.
        """

        def find() -> Any:
            open_now = self.listener.connections
            if connection is None:
                speaking = [
                    each for each in open_now.values() if each.wire and each.wire.has_spoken
                ]
                if not speaking:
                    raise WireError("no client has sent anything yet; connect one first")
                return speaking[-1]
            found = open_now.get(connection)
            if found is None:
                there = ", ".join(open_now) or "none"
                raise WireError(f"no connection {connection!r}; there are: {there}")
            if found.wire is None:
                raise WireError(f"{connection} has not sent anything yet; legal: wait until it has")
            return found

        return FrozenWire(self.ask, self.ask(find))

    def wires(self) -> list[FrozenWire]:
        """The wires of all connections, in order of opening."""
        clients = self.ask(lambda: list(self.listener.connections.values()))
        return [FrozenWire(self.ask, client) for client in clients if client.wire is not None]

    def connections(self) -> list[str]:
        """Names of the connections that are open, in order of opening."""
        return self.ask(lambda: list(self.listener.connections))

    def see(self, connection: str | None = None, *, after: int = -1, most: int = 100) -> Seen:
        """One moment: who is connected, what one of the wires looks like, and the trace so far.

        Of a server that is stopped the trace alone is left.

        Args:
            connection: whose wire; where it is over, or None, the latest that has sent something.
            after: only rows with a larger `seq`; none where nothing is recorded.
            most: so many of the frames that wait are listed, per direction.
        """

        def look() -> Seen:
            clients = self.listener.connections
            chosen = clients.get(connection or "")
            if chosen is None or chosen.wire is None:
                latest = reversed(clients.values())
                chosen = next((one for one in latest if one.wire is not None), None)
            wire = None
            if chosen is not None:  # asked at once, for this is the server's thread
                wire = FrozenWire(lambda question: question(), chosen).picture(most)
            return Seen(connections=list(clients), wire=wire, rows=rows())

        def rows() -> list[Any]:
            return [] if self.recording is None else self.recording.rows(after)

        with contextlib.suppress(ListenError):
            return self.ask(look)
        return Seen(connections=[], wire=None, rows=rows())  # stopped: the trace is left

    def freeze_new(self, on: bool = True) -> None:
        """Whether the gates of connections made from now on are closed from the first octet."""

        def switch() -> None:
            self.listener.freeze_new = on
            self.listener.changed()

        self.ask(switch)

    @property
    def freezes_new(self) -> bool:
        """Whether the gates of new connections are closed."""
        return self.listener.freeze_new

    def watch(self, look: Callable[[], None]) -> Watch:
        """Call a function, in a thread of its own, whenever there may be something new to see.

        It is called often while frames move, a few times a second, and now and then while nothing
        does; so the kernel need not be free for somebody to be shown what waits. End it with
        `close()` of the result; it ends with the server.
        """
        watch = Watch(look)
        self._watches = [*(one for one in self._watches if not one.over), watch]
        return watch

    # -- the trace --------------------------------------------------------------------------

    def rows(self, after: int = -1) -> list[Any]:
        """The trace so far, or its latest part where it is long; `stage` draws it.

        Args:
            after: only rows with a larger `seq`.

        Raises:
            ListenError: if nothing is recorded.
        """
        if self.recording is None:
            raise ListenError("nothing is recorded here; start the server with a recording")
        return self.recording.rows(after)

    def overview(self) -> dict[str, Any]:
        """Flat picture of the listener, what is behind it, and the recording."""
        recorded = {} if self.recording is None else self.recording.overview()
        return self.ask(self.listener.overview) | {f"trace.{k}": v for k, v in recorded.items()}

    def _tell(self) -> None:
        for watch in self._watches:
            watch.fresh.set()


class LiveServer(ServerHandle[ServerT]):
    """A socket server in a thread of its own, and the handle on it; a context manager.

    It stops with `stop`, at the latest when the process ends, and then tells its clients.

    Args:
        make: makes the socket server on the loop's thread.
        host: address to listen on; another than loopback needs `allow_remote` and a lock.
        port: 0 takes a free one.
        recording: keeps the trace; None records nothing.
        tls: a server context.
        allow_remote: listen beyond loopback.
        locked: whether who connects must show a password.

    Attributes:
        port: on which it listens.

    Raises:
        ListenError: if it cannot be started as asked.
    """

    def __init__(
        self,
        make: Callable[[asyncio.AbstractEventLoop], ServerT],
        *,
        host: str = LOOPBACK,
        port: int = 0,
        recording: Recording | None = None,
        tls: ssl.SSLContext | None = None,
        allow_remote: bool = False,
        locked: bool = False,
    ) -> None:
        super().__init__(recording)
        _check_reach(host, allow_remote, locked or tls is not None)
        raise_open_files()
        self.host = host
        self.port = 0
        self._tls = tls is not None
        self._stopping = threading.Lock()
        self._ending = threading.Lock()
        self._ended = False  # the loop takes no further question
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="live-server", daemon=True)
        self._thread.start()
        try:
            self.listener = self.ask(lambda: make(self._loop))
            self.listener.on_change = self._tell
            self.port = self._wait(self.listener.start(host, port, tls))
        except BaseException as error:
            self._end_thread()
            if isinstance(error, ListenError) and port:
                raise ListenError(f"{error}{_own_on(port)}") from error
            raise
        _RUNNING.add(self)
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """What a client connects to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'amqps' if self._tls else 'amqp'}://{host}:{self.port}"

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function on the server's thread and wait for its result.

        Raises:
            ListenError: if the server is stopped.
        """
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            try:
                answer.set_result(question())
            except BaseException as error:
                answer.set_exception(error)

        with self._ending:
            if self._ended:
                raise ListenError(f"the server on {self.url} is stopped; start another")
            self._loop.call_soon_threadsafe(work)
        return answer.result(START_TIMEOUT_S)

    # -- the end ----------------------------------------------------------------------------

    def stop(self) -> None:
        """Let go of what waits, tell the clients, and end; stopping twice is harmless.

        Clients that do not answer are cut after half a second.
        """
        with self._stopping:
            if self._loop.is_closed():
                return
            atexit.unregister(self.stop)
            _RUNNING.discard(self)
            with contextlib.suppress(TimeoutError):
                self._wait(self.listener.stop())
            self._end_thread()
            for watch in self._watches:
                watch.close()
            if self.recording is not None:
                self.recording.close()

    @property
    def running(self) -> bool:
        """Whether it listens."""
        return self._thread.is_alive()

    def __repr__(self) -> str:
        """The address, which is what one needs."""
        state = "" if self.running else ", stopped"
        return f"<{type(self).__name__} {self.url}{state}>"

    def __enter__(self) -> LiveServer[ServerT]:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- inside -----------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)  # a proxy may be about to reach the broker behind
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_TIMEOUT_S)

    def _end_thread(self) -> None:
        with self._ending:  # whoever asked before is still answered, whoever asks later is refused
            self._ended = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.close()


class LiveBroker(LiveServer[Listener]):
    """A broker that listens.

    Args:
        preset: a preset or its name.
        host: address to listen on; another than loopback needs `allow_remote`, and then TLS or
            users with passwords.
        port: 0 takes a free one.
        recording: keeps the trace; None records nothing.
        limits: bounds.
        users: who may log in, name to password; nobody else may then.
        tls: a server context.
        allow_remote: listen beyond loopback.
        queues: names of queues that are there from the beginning; clients of RabbitMQ's presets
            make others through the management node, `/management`.

    Raises:
        ListenError: if it cannot be started as asked.
    """

    def __init__(
        self,
        preset: Preset | str = "spec",
        *,
        host: str = LOOPBACK,
        port: int = 0,
        recording: Recording | None = None,
        limits: Limits | None = None,
        users: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        allow_remote: bool = False,
        queues: Iterable[str] = (),
    ) -> None:
        if isinstance(queues, str):
            raise ListenError(f"queues={queues!r}: a list of names is wanted, such as [{queues!r}]")
        numbers = presets.get(preset) if isinstance(preset, str) else preset
        declared = tuple(queues)

        def make(loop: asyncio.AbstractEventLoop) -> Listener:
            return Listener(
                loop,
                numbers,
                record=None if recording is None else recording.tap,
                limits=limits,
                users=None if users is None else dict(users),
                queues=declared,
            )

        super().__init__(
            make,
            host=host,
            port=port,
            recording=recording,
            tls=tls,
            allow_remote=allow_remote,
            locked=bool(users),
        )


def stop_all() -> None:
    """Stop every server of this process."""
    for server in tuple(_RUNNING):
        server.stop()


def _check_reach(host: str, allow_remote: bool, locked: bool) -> None:
    if host in LOOPBACKS:
        return
    if not allow_remote:
        raise ListenError(
            f"{host} can be reached from other machines; say allow_remote=True if that is"
            " meant, with tls or users; without it legal: 127.0.0.1"
        )
    if not locked:
        raise ListenError(
            f"listening on {host} needs tls or users with passwords: anybody could connect"
        )


def _own_on(port: int) -> str:
    """Whether it is one of this process that is in the way."""
    if any(other.port == port for other in list(_RUNNING)):
        return "; it is taken by a server that this notebook or program has started: stop that one"
    return ""
