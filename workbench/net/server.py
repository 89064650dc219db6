"""A live broker in a thread of its own, so that a notebook or a program goes on beside it.

A notebook's kernel has an event loop that stands still while a cell runs; a client in that cell
would wait for ever for a broker on the same loop. So the broker has its own thread and loop, and
what a person asks of it is handed over.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from workbench import presets
from workbench.presets import Preset
from workbench.sim import WireError

from .frozen import FrozenWire
from .limits import Limits
from .listener import LOOPBACK, Listener, ListenError
from .live_connection import LiveConnection
from .recording import Recording

T = TypeVar("T")
START_TIMEOUT_S = 10.0
LOOPBACKS = frozenset({LOOPBACK, "::1", "localhost"})


class LiveBroker:
    """A broker that listens, and the handle on it; a context manager.

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
        queues: names of queues that there are from the beginning; clients of RabbitMQ's presets
            make others through the management node, `/management`.

    Attributes:
        port: on which it listens.

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
        if host not in LOOPBACKS:
            if not allow_remote:
                raise ListenError(
                    f"{host} can be reached from other machines; say allow_remote=True if that is"
                    " meant, with tls or users; without it legal: 127.0.0.1"
                )
            if tls is None and not users:
                raise ListenError(
                    f"listening on {host} needs tls or users with passwords: anybody could connect"
                )
        if isinstance(preset, str):
            preset = presets.get(preset)
        self.host = host
        self.port = 0
        self.recording = recording
        self._tls = tls is not None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="live-broker", daemon=True)
        self._thread.start()
        self.listener: Listener
        try:
            self.listener = self.ask(
                lambda: Listener(
                    self._loop,
                    preset,
                    record=None if recording is None else recording.tap,
                    limits=limits,
                    users=None if users is None else dict(users),
                    queues=queues,
                )
            )
            self.port = self._wait(self.listener.start(host, port, tls))
        except BaseException:
            self._end_thread()
            raise

    @property
    def url(self) -> str:
        """What a client connects to."""
        return f"{'amqps' if self._tls else 'amqp'}://{self.host}:{self.port}"

    def news(self) -> list[str]:
        """What happened to connections since the last call, in words."""
        fresh = []
        with contextlib.suppress(IndexError):
            while True:
                fresh.append(self.listener.news.popleft())
        return fresh

    def ask(self, question: Callable[[], T]) -> T:
        """Call a function on the broker's thread and wait for its result."""

        async def answer() -> T:
            return question()

        result: T = self._wait(answer())
        return result

    def wire(self, connection: str) -> FrozenWire:
        """The wire of a connection, `c1`, `c2`, ..., to be held and let go by hand.

        Raises:
            WireError: if there is no such connection.
        """

        def find() -> LiveConnection:
            found = self.listener.connections.get(connection)
            if found is None:
                there = ", ".join(self.listener.connections) or "none"
                raise WireError(f"no connection {connection!r}; there are: {there}")
            return found

        return FrozenWire(self.ask, self.ask(find).wire)

    def connections(self) -> list[str]:
        """Names of the connections that are open, in order of opening."""
        return self.ask(lambda: list(self.listener.connections))

    def freeze_new(self, on: bool = True) -> None:
        """Whether the gates of connections made from now on are closed from the first octet."""

        def switch() -> None:
            self.listener.freeze_new = on

        self.ask(switch)

    def stop(self) -> None:
        """Cut every connection and end the thread; stopping twice is harmless."""
        if self._loop.is_closed():
            return
        self._wait(self.listener.stop())
        self._end_thread()
        if self.recording is not None:
            self.recording.close()

    @property
    def running(self) -> bool:
        """Whether it listens."""
        return self._thread.is_alive()

    def rows(self) -> list[Any]:
        """The trace so far, or its latest part where it is long; `stepper` opens it.

        Raises:
            ListenError: if nothing is recorded.
        """
        if self.recording is None:
            raise ListenError("nothing is recorded here; start the broker with a recording")
        return self.recording.rows()

    def overview(self) -> dict[str, Any]:
        """Flat picture of the listener, its broker and the recording."""
        recorded = {} if self.recording is None else self.recording.overview()
        return self.ask(self.listener.overview) | {f"trace.{k}": v for k, v in recorded.items()}

    def __enter__(self) -> LiveBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- inside -----------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_TIMEOUT_S)

    def _end_thread(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.close()
