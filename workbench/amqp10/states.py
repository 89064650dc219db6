"""State tables of connection, session and link.

The rules of this file:

* Every legal step stands in one of these tables; what is not there is not legal. The endpoint
  asks the table first and changes its counters after, so that a refused step changes nothing.
* The tables do not know whether they serve a client or a broker, and what a frame holds.
* `S` is something sent, `R` something received, both seen from the end that owns the state.

Connection and session states have the specification's names [AMQP 1.0, 2.4.6, 2.5.5]. Its drawing
of the connection leaves out what a quick peer may do: pipeline its open, or its open and close,
before this end has answered. Three states of ours complete it, named after the states in which the
peer then is: OPEN_PIPE_RCVD, OC_PIPE_RCVD and CLOSE_PIPE_RCVD. The specification draws no states of
a link; those names are ours.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

from workbench.amqp10.errors import LocalProtocolError

__all__ = [
    "CONNECTION_TABLE",
    "LINK_TABLE",
    "SESSION_TABLE",
    "ConnectionState",
    "Input",
    "LinkState",
    "SessionState",
    "legal_inputs",
    "next_state",
    "require",
]


class Input(Enum):
    """What happens to an endpoint: something it sends, or something it receives."""

    # Members are single, and every frame looks several up: the hash by name is slow.
    __hash__ = object.__hash__

    SEND_HEADER = "S:header"
    RECV_HEADER = "R:header"
    SEND_OPEN = "S:open"
    RECV_OPEN = "R:open"
    SEND_CLOSE = "S:close"
    SEND_ERROR_CLOSE = "S:close(error)"
    RECV_CLOSE = "R:close"
    SEND_BEGIN = "S:begin"
    RECV_BEGIN = "R:begin"
    SEND_END = "S:end"
    SEND_ERROR_END = "S:end(error)"
    RECV_END = "R:end"
    SEND_ATTACH = "S:attach"
    RECV_ATTACH = "R:attach"
    SEND_DETACH = "S:detach"
    SEND_ERROR_DETACH = "S:detach(error)"
    RECV_DETACH = "R:detach"
    SEND_FRAME = "S:frame"
    RECV_FRAME = "R:frame"

    @property
    def outgoing(self) -> bool:
        """Whether this end sends it."""
        return self.value.startswith("S:")

    @property
    def words(self) -> str:
        """The frame's name; `frame` is any frame of what the state belongs to."""
        return self.value[2:]


class State(Enum):
    """A state.

    Attributes:
        sends: this end may send frames in it, by its table.
        receives: the peer may.
        discards: what comes has no effect any more, for this end has left [2.4.6, 2.5.5].
    """

    __hash__ = object.__hash__

    sends: bool
    receives: bool
    discards: bool


class ConnectionState(State):
    """States of a connection [2.4.6]; the three with RCVD behind PIPE are ours."""

    START = "START"
    HDR_RCVD = "HDR_RCVD"
    HDR_SENT = "HDR_SENT"
    HDR_EXCH = "HDR_EXCH"
    OPEN_PIPE = "OPEN_PIPE"
    OC_PIPE = "OC_PIPE"
    OPEN_RCVD = "OPEN_RCVD"
    OPEN_SENT = "OPEN_SENT"
    CLOSE_PIPE = "CLOSE_PIPE"
    OPENED = "OPENED"
    CLOSE_RCVD = "CLOSE_RCVD"
    CLOSE_SENT = "CLOSE_SENT"
    DISCARDING = "DISCARDING"
    END = "END"
    OPEN_PIPE_RCVD = "OPEN_PIPE_RCVD"
    OC_PIPE_RCVD = "OC_PIPE_RCVD"
    CLOSE_PIPE_RCVD = "CLOSE_PIPE_RCVD"


class SessionState(State):
    """States of a session [2.5.5]. UNMAPPED is the state before the first and after the last."""

    UNMAPPED = "UNMAPPED"
    BEGIN_SENT = "BEGIN_SENT"
    BEGIN_RCVD = "BEGIN_RCVD"
    MAPPED = "MAPPED"
    END_SENT = "END_SENT"
    END_RCVD = "END_RCVD"
    DISCARDING = "DISCARDING"


class LinkState(State):
    """States of a link's attachment; the names are ours.

    DETACH_FAILED is what DISCARDING is to a session: this end has detached the link with an error,
    and until the peer's detach nothing else may come for it [2.6.5].
    """

    DETACHED = "DETACHED"
    ATTACH_SENT = "ATTACH_SENT"
    ATTACH_RCVD = "ATTACH_RCVD"
    ATTACHED = "ATTACHED"
    DETACH_SENT = "DETACH_SENT"
    DETACH_RCVD = "DETACH_RCVD"
    DETACH_FAILED = "DETACH_FAILED"


S = TypeVar("S", ConnectionState, SessionState, LinkState)
Table = Mapping[S, Mapping[Input, S]]


def _table(steps: dict[S, dict[Input, S]], discarding: tuple[S, ...]) -> Table[S]:
    for state, row in steps.items():
        state.sends, state.receives = Input.SEND_FRAME in row, Input.RECV_FRAME in row
        state.discards = state in discarding
    return MappingProxyType({state: MappingProxyType(row) for state, row in steps.items()})


def _connection_table() -> Table[ConnectionState]:
    s, i = ConnectionState, Input
    return _table(
        {
            s.START: {i.SEND_HEADER: s.HDR_SENT, i.RECV_HEADER: s.HDR_RCVD},
            s.HDR_RCVD: {i.SEND_HEADER: s.HDR_EXCH, i.RECV_OPEN: s.OPEN_PIPE_RCVD},
            s.HDR_SENT: {i.RECV_HEADER: s.HDR_EXCH, i.SEND_OPEN: s.OPEN_PIPE},
            s.HDR_EXCH: {i.SEND_OPEN: s.OPEN_SENT, i.RECV_OPEN: s.OPEN_RCVD},
            s.OPEN_PIPE: {
                i.RECV_HEADER: s.OPEN_SENT,
                i.SEND_FRAME: s.OPEN_PIPE,
                i.SEND_CLOSE: s.OC_PIPE,
                i.SEND_ERROR_CLOSE: s.OC_PIPE,
            },
            s.OC_PIPE: {i.RECV_HEADER: s.CLOSE_PIPE},
            s.OPEN_SENT: {
                i.RECV_OPEN: s.OPENED,
                i.SEND_FRAME: s.OPEN_SENT,
                i.SEND_CLOSE: s.CLOSE_PIPE,
                i.SEND_ERROR_CLOSE: s.CLOSE_PIPE,
            },
            s.CLOSE_PIPE: {i.RECV_OPEN: s.CLOSE_SENT},
            s.OPEN_RCVD: {
                i.SEND_OPEN: s.OPENED,
                i.RECV_FRAME: s.OPEN_RCVD,
                i.RECV_CLOSE: s.CLOSE_PIPE_RCVD,
            },
            s.OPEN_PIPE_RCVD: {
                i.SEND_HEADER: s.OPEN_RCVD,
                i.RECV_FRAME: s.OPEN_PIPE_RCVD,
                i.RECV_CLOSE: s.OC_PIPE_RCVD,
            },
            s.OC_PIPE_RCVD: {i.SEND_HEADER: s.CLOSE_PIPE_RCVD},
            s.CLOSE_PIPE_RCVD: {i.SEND_OPEN: s.CLOSE_RCVD},
            s.OPENED: {
                i.SEND_FRAME: s.OPENED,
                i.RECV_FRAME: s.OPENED,
                i.SEND_CLOSE: s.CLOSE_SENT,
                i.SEND_ERROR_CLOSE: s.DISCARDING,
                i.RECV_CLOSE: s.CLOSE_RCVD,
            },
            s.CLOSE_RCVD: {
                i.SEND_FRAME: s.CLOSE_RCVD,
                i.SEND_CLOSE: s.END,
                i.SEND_ERROR_CLOSE: s.END,
            },
            s.CLOSE_SENT: {i.RECV_FRAME: s.CLOSE_SENT, i.RECV_CLOSE: s.END},
            s.DISCARDING: {i.RECV_FRAME: s.DISCARDING, i.RECV_CLOSE: s.END},
            s.END: {},
        },
        discarding=(s.CLOSE_SENT, s.DISCARDING),
    )


def _session_table() -> Table[SessionState]:
    s, i = SessionState, Input
    return _table(
        {
            s.UNMAPPED: {i.SEND_BEGIN: s.BEGIN_SENT, i.RECV_BEGIN: s.BEGIN_RCVD},
            s.BEGIN_SENT: {
                i.RECV_BEGIN: s.MAPPED,
                i.SEND_FRAME: s.BEGIN_SENT,
                i.SEND_END: s.END_SENT,
                i.SEND_ERROR_END: s.DISCARDING,
            },
            s.BEGIN_RCVD: {
                i.SEND_BEGIN: s.MAPPED,
                i.RECV_FRAME: s.BEGIN_RCVD,
                i.RECV_END: s.END_RCVD,
            },
            s.MAPPED: {
                i.SEND_FRAME: s.MAPPED,
                i.RECV_FRAME: s.MAPPED,
                i.SEND_END: s.END_SENT,
                i.SEND_ERROR_END: s.DISCARDING,
                i.RECV_END: s.END_RCVD,
            },
            s.END_SENT: {
                i.RECV_BEGIN: s.END_SENT,
                i.RECV_FRAME: s.END_SENT,
                i.RECV_END: s.UNMAPPED,
            },
            s.END_RCVD: {
                i.SEND_BEGIN: s.END_RCVD,
                i.SEND_FRAME: s.END_RCVD,
                i.SEND_END: s.UNMAPPED,
                i.SEND_ERROR_END: s.UNMAPPED,
            },
            s.DISCARDING: {
                i.RECV_BEGIN: s.DISCARDING,
                i.RECV_FRAME: s.DISCARDING,
                i.RECV_END: s.UNMAPPED,
            },
        },
        discarding=(s.END_SENT, s.DISCARDING),
    )


def _link_table() -> Table[LinkState]:
    s, i = LinkState, Input
    return _table(
        {
            s.DETACHED: {i.SEND_ATTACH: s.ATTACH_SENT, i.RECV_ATTACH: s.ATTACH_RCVD},
            s.ATTACH_SENT: {
                i.RECV_ATTACH: s.ATTACHED,
                i.SEND_FRAME: s.ATTACH_SENT,
                i.SEND_DETACH: s.DETACH_SENT,
                i.SEND_ERROR_DETACH: s.DETACH_FAILED,
            },
            s.ATTACH_RCVD: {
                i.SEND_ATTACH: s.ATTACHED,
                i.RECV_FRAME: s.ATTACH_RCVD,
                i.RECV_DETACH: s.DETACH_RCVD,
            },
            s.ATTACHED: {
                i.SEND_FRAME: s.ATTACHED,
                i.RECV_FRAME: s.ATTACHED,
                i.SEND_DETACH: s.DETACH_SENT,
                i.SEND_ERROR_DETACH: s.DETACH_FAILED,
                i.RECV_DETACH: s.DETACH_RCVD,
            },
            s.DETACH_SENT: {
                i.RECV_ATTACH: s.DETACH_SENT,
                i.RECV_FRAME: s.DETACH_SENT,
                i.RECV_DETACH: s.DETACHED,
            },
            s.DETACH_RCVD: {
                i.SEND_ATTACH: s.DETACH_RCVD,
                i.SEND_DETACH: s.DETACHED,
                i.SEND_ERROR_DETACH: s.DETACHED,
            },
            s.DETACH_FAILED: {
                i.RECV_ATTACH: s.DETACH_FAILED,
                i.RECV_DETACH: s.DETACHED,
            },
        },
        discarding=(s.DETACH_SENT,),
    )


CONNECTION_TABLE: Table[ConnectionState] = _connection_table()
"""State, input, next state. `frame` is any frame but open and close."""

SESSION_TABLE: Table[SessionState] = _session_table()
"""State, input, next state. `frame` is any frame of the session but begin and end."""

LINK_TABLE: Table[LinkState] = _link_table()
"""State, input, next state. `frame` is a flow that names the link, or a transfer."""


def next_state(table: Table[S], state: S, step: Input) -> S | None:
    """The state to which a step leads, or None if the step is not legal in this state."""
    return table[state].get(step)


def legal_inputs(table: Table[S], state: S, *, outgoing: bool) -> list[Input]:
    """The steps that are legal in a state, one direction of them, in the table's order."""
    return [step for step in table[state] if step.outgoing == outgoing]


def require(table: Table[S], state: S, step: Input, what: str) -> S:
    """The state to which a step of this end leads.

    Args:
        table: one of the three.
        state: the present state.
        step: what this end wants to send.
        what: whose state it is, for the error text: `link orders`.

    Raises:
        LocalProtocolError: the step is not legal now; the text lists what is.
    """
    following = table[state].get(step)
    if following is None:
        raise LocalProtocolError(
            f"{what} is in state {state.value}: {step.words} cannot be sent; legal now: "
            + legal_words(table, state)
        )
    return following


def legal_words(table: Table[S], state: S) -> str:
    """What may be sent in a state, or for what to wait."""
    sends = [step.words for step in legal_inputs(table, state, outgoing=True)]
    if sends:
        return ", ".join(sends)
    waits = [step.words for step in legal_inputs(table, state, outgoing=False)]
    return f"wait for {' or '.join(waits)}" if waits else "nothing more"
