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


def _read(kind: type[S], text: str, *discarding: S) -> Table[S]:
    """A table from lines `STATE: S:step NEXT, R:step NEXT`."""
    table: dict[S, Mapping[Input, S]] = {}
    for line in text.strip().splitlines():
        name, _, steps = line.partition(":")
        said = [step.split() for step in steps.split(",") if step]
        state, row = kind(name.strip()), {Input(step): kind(following) for step, following in said}
        state.sends, state.receives = Input.SEND_FRAME in row, Input.RECV_FRAME in row
        state.discards = state in discarding
        table[state] = MappingProxyType(row)
    return MappingProxyType(table)


CONNECTION_TABLE: Table[ConnectionState] = _read(
    ConnectionState,
    """
    START: S:header HDR_SENT, R:header HDR_RCVD
    HDR_RCVD: S:header HDR_EXCH, R:open OPEN_PIPE_RCVD
    HDR_SENT: R:header HDR_EXCH, S:open OPEN_PIPE
    HDR_EXCH: S:open OPEN_SENT, R:open OPEN_RCVD
    OPEN_PIPE: R:header OPEN_SENT, S:frame OPEN_PIPE, S:close OC_PIPE, S:close(error) OC_PIPE
    OC_PIPE: R:header CLOSE_PIPE
    OPEN_SENT: R:open OPENED, S:frame OPEN_SENT, S:close CLOSE_PIPE, S:close(error) CLOSE_PIPE
    CLOSE_PIPE: R:open CLOSE_SENT
    OPEN_RCVD: S:open OPENED, R:frame OPEN_RCVD, R:close CLOSE_PIPE_RCVD
    OPEN_PIPE_RCVD: S:header OPEN_RCVD, R:frame OPEN_PIPE_RCVD, R:close OC_PIPE_RCVD
    OC_PIPE_RCVD: S:header CLOSE_PIPE_RCVD
    CLOSE_PIPE_RCVD: S:open CLOSE_RCVD
    OPENED: S:frame OPENED, R:frame OPENED, S:close CLOSE_SENT, S:close(error) DISCARDING, \
        R:close CLOSE_RCVD
    CLOSE_RCVD: S:frame CLOSE_RCVD, S:close END, S:close(error) END
    CLOSE_SENT: R:frame CLOSE_SENT, R:close END
    DISCARDING: R:frame DISCARDING, R:close END
    END:
    """,
    ConnectionState.CLOSE_SENT,
    ConnectionState.DISCARDING,
)
"""State, input, next state. `frame` is any frame but open and close."""

SESSION_TABLE: Table[SessionState] = _read(
    SessionState,
    """
    UNMAPPED: S:begin BEGIN_SENT, R:begin BEGIN_RCVD
    BEGIN_SENT: R:begin MAPPED, S:frame BEGIN_SENT, S:end END_SENT, S:end(error) DISCARDING
    BEGIN_RCVD: S:begin MAPPED, R:frame BEGIN_RCVD, R:end END_RCVD
    MAPPED: S:frame MAPPED, R:frame MAPPED, S:end END_SENT, S:end(error) DISCARDING, R:end END_RCVD
    END_SENT: R:begin END_SENT, R:frame END_SENT, R:end UNMAPPED
    END_RCVD: S:begin END_RCVD, S:frame END_RCVD, S:end UNMAPPED, S:end(error) UNMAPPED
    DISCARDING: R:begin DISCARDING, R:frame DISCARDING, R:end UNMAPPED
    """,
    SessionState.END_SENT,
    SessionState.DISCARDING,
)
"""State, input, next state. `frame` is any frame of the session but begin and end."""

LINK_TABLE: Table[LinkState] = _read(
    LinkState,
    """
    DETACHED: S:attach ATTACH_SENT, R:attach ATTACH_RCVD
    ATTACH_SENT: R:attach ATTACHED, S:frame ATTACH_SENT, S:detach DETACH_SENT, \
        S:detach(error) DETACH_FAILED
    ATTACH_RCVD: S:attach ATTACHED, R:frame ATTACH_RCVD, R:detach DETACH_RCVD
    ATTACHED: S:frame ATTACHED, R:frame ATTACHED, S:detach DETACH_SENT, \
        S:detach(error) DETACH_FAILED, R:detach DETACH_RCVD
    DETACH_SENT: R:attach DETACH_SENT, R:frame DETACH_SENT, R:detach DETACHED
    DETACH_RCVD: S:attach DETACH_RCVD, S:detach DETACHED, S:detach(error) DETACHED
    DETACH_FAILED: R:attach DETACH_FAILED, R:detach DETACHED
    """,
    LinkState.DETACH_SENT,
)
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
