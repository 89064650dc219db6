"""States of a connection and of a session's attachment, as tables.

The rules of this file:

* Every legal step is in these tables; the endpoint asks them before it changes anything.
* A connection's table is one conversation that both ends follow: who may say a line is in
  `SPEAKERS`. The specification draws no state diagram; the names are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

__all__ = [
    "CONNECTION_TABLE",
    "SESSION_TABLE",
    "SPEAKERS",
    "ConnectionState",
    "SessionState",
    "legal_words",
]


class ConnectionState(Enum):
    """How far the conversation is."""

    START = "START"
    HEADER = "HEADER"
    HEADERS = "HEADERS"
    STARTED = "STARTED"
    AUTHENTICATING = "AUTHENTICATING"
    SECURING = "SECURING"
    TUNING = "TUNING"
    TUNED = "TUNED"
    OPENING = "OPENING"
    OPENED = "OPENED"
    CLOSE_SENT = "CLOSE_SENT"
    CLOSE_RCVD = "CLOSE_RCVD"
    END = "END"


class SessionState(Enum):
    """Whether a session is attached to its channel."""

    DETACHED = "DETACHED"
    ATTACH_SENT = "ATTACH_SENT"
    ATTACH_RCVD = "ATTACH_RCVD"
    ATTACHED = "ATTACHED"
    DETACH_SENT = "DETACH_SENT"
    DETACH_RCVD = "DETACH_RCVD"


CLIENT, SERVER = "client", "server"

_c = ConnectionState
CONNECTION_TABLE: Mapping[ConnectionState, Mapping[str, ConnectionState]] = {
    _c.START: {"header of the client": _c.HEADER},
    _c.HEADER: {"header of the server": _c.HEADERS},
    _c.HEADERS: {"connection.start": _c.STARTED},
    _c.STARTED: {"connection.start-ok": _c.AUTHENTICATING},
    _c.AUTHENTICATING: {"connection.secure": _c.SECURING, "connection.tune": _c.TUNING},
    _c.SECURING: {"connection.secure-ok": _c.AUTHENTICATING},
    _c.TUNING: {"connection.tune-ok": _c.TUNED},
    _c.TUNED: {"connection.open": _c.OPENING},
    _c.OPENING: {"connection.open-ok": _c.OPENED},
    _c.OPENED: {},
    _c.CLOSE_SENT: {"connection.close-ok": _c.END},
    _c.CLOSE_RCVD: {"connection.close-ok": _c.END},
    _c.END: {},
}
"""State, line of the conversation, next state. connection.close is legal from HEADERS to OPENED."""

SPEAKERS: Mapping[str, str] = {
    "header of the client": CLIENT,
    "header of the server": SERVER,
    "connection.start": SERVER,
    "connection.start-ok": CLIENT,
    "connection.secure": SERVER,
    "connection.secure-ok": CLIENT,
    "connection.tune": SERVER,
    "connection.tune-ok": CLIENT,
    "connection.open": CLIENT,
    "connection.open-ok": SERVER,
}

_s = SessionState
SESSION_TABLE: Mapping[SessionState, Mapping[str, SessionState]] = {
    _s.DETACHED: {"S:session.attach": _s.ATTACH_SENT, "R:session.attach": _s.ATTACH_RCVD},
    _s.ATTACH_SENT: {
        "R:session.attached": _s.ATTACHED,
        "R:session.detached": _s.DETACHED,
        "S:session.detach": _s.DETACH_SENT,
        "S:frame": _s.ATTACH_SENT,
        "R:frame": _s.ATTACH_SENT,
    },
    _s.ATTACH_RCVD: {
        "S:session.attached": _s.ATTACHED,
        "S:session.detached": _s.DETACHED,
        "R:session.detach": _s.DETACH_RCVD,
        "R:frame": _s.ATTACH_RCVD,
    },
    _s.ATTACHED: {
        "S:session.detach": _s.DETACH_SENT,
        "R:session.detach": _s.DETACH_RCVD,
        "R:session.detached": _s.DETACHED,
        "S:frame": _s.ATTACHED,
        "R:frame": _s.ATTACHED,
    },
    # What comes now is read over, but for the two: this end has left.
    _s.DETACH_SENT: {
        "R:session.detach": _s.DETACH_SENT,
        "S:session.detached": _s.DETACHED,
        "R:session.detached": _s.DETACHED,
    },
    _s.DETACH_RCVD: {"S:session.detached": _s.DETACHED},
}
"""State, step, next state; S is sent by this end, R received. `frame` is any other frame."""


def legal_words(state: SessionState) -> str:
    """What this end may send in a state, or what it waits for."""
    steps = SESSION_TABLE[state]
    sends = [step[2:] for step in steps if step.startswith("S:")]
    waits = [step[2:] for step in steps if step.startswith("R:")]
    return ", ".join(sends) if sends else f"wait for {' or '.join(waits)}"
