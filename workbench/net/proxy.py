"""The gate in front of another broker, in a thread of its own."""

from __future__ import annotations

import asyncio
import ssl

from .forwarder import Forwarder, Target
from .limits import Limits
from .recording import Recording
from .server import LOOPBACKS, LiveServer
from .socket_server import LOOPBACK, ListenError


class LiveProxy(LiveServer[Forwarder]):
    """The gate in front of another broker: frames of both ways are recorded, held and passed on.

    Args:
        target: where that broker listens: `host:port`, `amqp://...`, `amqps://...`.
        host: address to listen on; another than loopback needs `allow_remote`, and then TLS.
            (Passwords are the other broker's business.)
        port: 0 takes a free one.
        recording: keeps the trace; None records nothing.
        limits: bounds.
        tls: a server context.
        trust: for a target with TLS: whom to trust; None trusts as the system does.
        allow_remote: listen beyond loopback.

    Attributes:
        target: the broker behind.

    Raises:
        ListenError: if it cannot be started as asked.
    """

    def __init__(
        self,
        target: str,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        recording: Recording | None = None,
        limits: Limits | None = None,
        tls: ssl.SSLContext | None = None,
        trust: ssl.SSLContext | None = None,
        allow_remote: bool = False,
    ) -> None:
        self.target = found = Target.of(target)
        if port and port == found.port and {host, found.host} <= LOOPBACKS:
            raise ListenError(f"{found} is the proxy itself; legal: another port for one of them")

        def make(loop: asyncio.AbstractEventLoop) -> Forwarder:
            record = None if recording is None else recording.tap
            return Forwarder(loop, found, record=record, limits=limits, trust=trust)

        super().__init__(
            make, host=host, port=port, recording=recording, tls=tls, allow_remote=allow_remote
        )
