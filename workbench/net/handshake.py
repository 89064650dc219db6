"""The TLS handshake of a client that connects, before anybody serves it.

asyncio's own server drops a client whose handshake fails, and tells nobody why.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

from .buffered_socket import words_of

if TYPE_CHECKING:
    from .socket_server import SocketServer


class Handshake(asyncio.Protocol):
    """A client whose TLS handshake is under way.

    Args:
        server: whose client it is to be.
        context: with the server's certificate.
    """

    def __init__(self, server: SocketServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._octets = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected; it is turned away if there are too many."""
        server = self._server
        if server.admits(transport):
            server.handshakes[self] = server.loop.create_task(self._shake_hands(transport))

    def data_received(self, data: bytes) -> None:
        """Octets that came in one piece with the end of the handshake."""
        self._octets += data

    async def _shake_hands(self, transport: Any) -> None:
        server, patience_s = self._server, self._server.limits.handshake_s
        try:
            secured: Any = await server.loop.start_tls(
                transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=patience_s,
            )
        except OSError as error:
            server.news.append(
                f"a client from {words_of(transport)} is not let in: the TLS handshake failed:"
                f" {_why(error, patience_s)}"
            )
            return
        finally:
            server.handshakes.pop(self)
        serving: Any = server.make()
        secured.set_protocol(serving)
        serving.connection_made(secured)
        if self._octets and not secured.is_closing():
            serving.data_received(self._octets)


def _why(error: OSError, patience_s: float) -> str:
    """The reason in words."""
    if isinstance(error, ConnectionResetError):
        return "the client closed the connection"
    if not isinstance(error, ssl.SSLError):
        return f"it was not over within {patience_s:g} s"
    reason = str(error.reason or error).replace("_", " ").lower()  # OpenSSL's
    if "alert" in reason:
        return (
            f"the client refused ({reason}); it must trust this certificate or its authority, and"
            " connect to a name that is in it"
        )
    return f"{reason}; legal here: TLS, an address that begins with amqps://"
