"""SASL [5.3], both ends, with the mechanisms ANONYMOUS and PLAIN.

`SaslClient` and `SaslServer` are what an owner gives to a connection; each makes an exchange, the
state of one connection's SASL. An exchange takes the peer's frame and gives what to send back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workbench.amqp10.errors import ErrorCondition, RemoteProtocolError, Scope
from workbench.amqp10.performatives import (
    Performative,
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from workbench.amqp10.value_text import value_text

__all__ = ["ANONYMOUS", "PLAIN", "SaslClient", "SaslExchange", "SaslServer"]

ANONYMOUS = "ANONYMOUS"
PLAIN = "PLAIN"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SaslClient:
    """How a client makes itself known.

    Attributes:
        mechanism: `ANONYMOUS` or `PLAIN`.
        user: for PLAIN; for ANONYMOUS a text for the server's log.
        password: for PLAIN.
        hostname: told in the init.
    """

    mechanism: str = ANONYMOUS
    user: str = ""
    password: str = ""
    hostname: str | None = None

    def __repr__(self) -> str:
        return f"SaslClient(mechanism={self.mechanism!r}, user={self.user!r})"

    def response(self) -> bytes:
        """The mechanism's one response: for PLAIN `NUL user NUL password` [RFC 4616]."""
        if self.mechanism == PLAIN:
            return b"\x00" + self.user.encode() + b"\x00" + self.password.encode()
        return self.user.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslServer:
    """Whom a server lets in.

    Attributes:
        check: given user and password, says whether they are right; None: PLAIN is not offered.
        anonymous: whether ANONYMOUS is offered.
        required: a client that begins with the AMQP header is refused.
        hangs_up: a mechanism that is not offered, and a response that cannot be read, get no
            outcome: the exchange fails, as RabbitMQ's does.
    """

    check: Callable[[str, str], bool] | None = None
    anonymous: bool = True
    required: bool = True
    hangs_up: bool = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What is offered, best first."""
        offered = (PLAIN,) if self.check is not None else ()
        return (*offered, ANONYMOUS) if self.anonymous else offered


class SaslExchange:
    """The SASL exchange of one connection, at either end.

    Attributes:
        code: how it ended; None while it lasts.
        user: who the client is, once that is known.
    """

    def __init__(self, side: SaslClient | SaslServer) -> None:
        self.side = side
        self.code: SaslCode | None = None
        self.user: str | None = None
        self._mechanism: str | None = None

    def first(self) -> Performative | None:
        """What this end sends without being asked, after the headers: a server's mechanisms."""
        if isinstance(self.side, SaslServer):
            return SaslMechanisms(sasl_server_mechanisms=self.side.mechanisms)
        return None

    def receive(self, frame: Performative) -> Performative | None:
        """Takes in a frame of the peer.

        Args:
            frame: any SASL performative.

        Returns:
            What to answer, or None.

        Raises:
            RemoteProtocolError: the frame may not come now.
        """
        if self.code is not None:
            raise _unexpected(frame, "nothing: the exchange is over")
        if isinstance(self.side, SaslServer):
            return self._serve(self.side, frame)
        return self._ask(self.side, frame)

    # -- client ---------------------------------------------------------------------------------

    def _ask(self, client: SaslClient, frame: Performative) -> Performative | None:
        if self._mechanism is None:
            if not isinstance(frame, SaslMechanisms):
                raise _unexpected(frame, "sasl-mechanisms")
            if client.mechanism not in frame.sasl_server_mechanisms:
                self.code = SaslCode.AUTH
                return None
            self._mechanism = client.mechanism
            return SaslInit(
                mechanism=client.mechanism,
                initial_response=client.response(),
                hostname=client.hostname,
            )
        if isinstance(frame, SaslChallenge):
            return SaslResponse(response=client.response())
        if isinstance(frame, SaslOutcome):
            self.code = frame.code
            self.user = client.user if client.mechanism == PLAIN else "anonymous"
            return None
        raise _unexpected(frame, "sasl-challenge or sasl-outcome")

    # -- server ---------------------------------------------------------------------------------

    def _serve(self, server: SaslServer, frame: Performative) -> Performative:
        if self._mechanism is None:
            if not isinstance(frame, SaslInit):
                raise _unexpected(frame, "sasl-init")
            self._mechanism = frame.mechanism
            if frame.mechanism not in server.mechanisms:
                legal = ", ".join(server.mechanisms)
                return self._misfit(
                    server, f"mechanism {value_text(frame.mechanism)}; legal: {legal}"
                )
            asks = frame.initial_response is None and frame.mechanism == PLAIN
            if asks and not server.hangs_up:
                return SaslChallenge(challenge=b"")
            return self._judge(server, frame.initial_response or b"")
        if not isinstance(frame, SaslResponse):
            raise _unexpected(frame, "sasl-response")
        return self._judge(server, frame.response)

    def _judge(self, server: SaslServer, response: bytes) -> Performative:
        if self._mechanism == ANONYMOUS:
            self.user = "anonymous"
            return self._finish(SaslCode.OK)
        assert server.check is not None
        parts = response.split(b"\x00")
        try:
            identity, user, password = (part.decode() for part in parts)
        except ValueError:  # not three parts, or not UTF-8
            return self._misfit(server, "a PLAIN response that is not NUL user NUL password")
        if identity and server.hangs_up:
            return self._misfit(server, "a PLAIN response with an authorisation identity")
        self.user = user
        return self._finish(SaslCode.OK if server.check(user, password) else SaslCode.AUTH)

    def _misfit(self, server: SaslServer, what: str) -> SaslOutcome:
        """The outcome for what nobody can check.

        Raises:
            RemoteProtocolError: the server hangs up on it.
        """
        if server.hangs_up:
            raise RemoteProtocolError(
                ErrorCondition.DECODE_ERROR, Scope.CONNECTION, f"{what} [5.3.3]"
            )
        return self._finish(SaslCode.AUTH)

    def _finish(self, code: SaslCode) -> SaslOutcome:
        self.code = code
        return SaslOutcome(code=code)


def _unexpected(frame: Performative, legal: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCondition.ILLEGAL_STATE,
        Scope.CONNECTION,
        f"{frame.NAME} cannot come now in the SASL exchange; legal: {legal} [5.3.2]",
    )
