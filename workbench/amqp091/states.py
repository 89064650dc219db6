"""State tables of connection and channel.

Every legal step stands in one of these tables; what is not there is not legal. `S` is something
sent, `R` something received, both seen from the end that owns the state. The tables serve client
and server alike: who speaks first decides which states an end passes through. The specification
draws no states; the names are ours [2.2.4, 2.2.5 and the grammars of connection and channel].
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

from workbench.amqp091.errors import LocalProtocolError
from workbench.amqp091.methods import (
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    Method,
)

__all__ = [
    "CHANNEL_TABLE", "CONNECTION_TABLE", "HEADER", "OTHER", "ChannelState", "ConnectionState",
    "Step", "next_state", "require", "step_of",
]  # fmt: skip


class Step(Enum):
    """What is sent or received; a method that moves no state is `frame`."""

    # Members are single, and every frame looks several up: the hash by name is slow.
    __hash__ = object.__hash__

    HEADER = "header"
    START = "start"
    START_OK = "start-ok"
    TUNE = "tune"
    TUNE_OK = "tune-ok"
    OPEN = "open"
    OPEN_OK = "open-ok"
    CLOSE = "close"
    CLOSE_OK = "close-ok"
    FRAME = "frame"


HEADER, OTHER = Step.HEADER, Step.FRAME

_STEPS: dict[type[Method], Step] = {
    ConnectionStart: Step.START,
    ConnectionStartOk: Step.START_OK,
    ConnectionTune: Step.TUNE,
    ConnectionTuneOk: Step.TUNE_OK,
    ConnectionOpen: Step.OPEN,
    ConnectionOpenOk: Step.OPEN_OK,
    ConnectionClose: Step.CLOSE,
    ConnectionCloseOk: Step.CLOSE_OK,
    ChannelOpen: Step.OPEN,
    ChannelOpenOk: Step.OPEN_OK,
    ChannelClose: Step.CLOSE,
    ChannelCloseOk: Step.CLOSE_OK,
}


def step_of(method: Method) -> Step:
    """The step that a method is in the table of its connection or channel."""
    return _STEPS.get(type(method), OTHER)


class ConnectionState(Enum):
    """States of a connection, named after what came or went last."""

    __hash__ = object.__hash__

    START = "START"
    HEADER_SENT = "HEADER_SENT"
    HEADER_RCVD = "HEADER_RCVD"
    START_SENT = "START_SENT"
    START_RCVD = "START_RCVD"
    START_OK_SENT = "START_OK_SENT"
    START_OK_RCVD = "START_OK_RCVD"
    TUNE_SENT = "TUNE_SENT"
    TUNE_RCVD = "TUNE_RCVD"
    TUNED = "TUNED"
    OPEN_SENT = "OPEN_SENT"
    OPEN_RCVD = "OPEN_RCVD"
    OPENED = "OPENED"
    CLOSE_SENT = "CLOSE_SENT"
    CLOSE_RCVD = "CLOSE_RCVD"
    CLOSED = "CLOSED"
    END = "END"


class ChannelState(Enum):
    """States of a channel."""

    __hash__ = object.__hash__

    CLOSED = "CLOSED"
    OPEN_SENT = "OPEN_SENT"
    OPEN_RCVD = "OPEN_RCVD"
    OPENED = "OPENED"
    CLOSE_SENT = "CLOSE_SENT"
    CLOSE_RCVD = "CLOSE_RCVD"


S = TypeVar("S", ConnectionState, ChannelState)
Key = tuple[bool, Step]  # sent, what
Table = Mapping[S, Mapping[Key, S]]


def _read(kind: type[S], text: str) -> Table[S]:
    """A table from lines `STATE: S:step NEXT, R:step NEXT`."""
    table: dict[S, Mapping[Key, S]] = {state: {} for state in kind}
    for line in text.strip().splitlines():
        name, _, steps = line.partition(":")
        row: dict[Key, S] = {}
        for step in steps.split(","):
            said, following = step.split()
            row[said[0] == "S", Step(said[2:])] = kind(following)
        table[kind(name.strip())] = MappingProxyType(row)
    return MappingProxyType(table)


CONNECTION_TABLE: Table[ConnectionState] = _read(
    ConnectionState,
    """
    START: S:header HEADER_SENT, R:header HEADER_RCVD
    HEADER_SENT: R:start START_RCVD
    HEADER_RCVD: S:start START_SENT
    START_SENT: R:start-ok START_OK_RCVD, S:close CLOSE_SENT, R:close CLOSE_RCVD
    START_RCVD: S:start-ok START_OK_SENT, S:close CLOSE_SENT, R:close CLOSE_RCVD
    START_OK_SENT: R:tune TUNE_RCVD, S:close CLOSE_SENT, R:close CLOSE_RCVD
    START_OK_RCVD: S:tune TUNE_SENT, S:close CLOSE_SENT, R:close CLOSE_RCVD
    TUNE_SENT: R:tune-ok TUNED, S:close CLOSE_SENT, R:close CLOSE_RCVD
    TUNE_RCVD: S:tune-ok TUNED, S:close CLOSE_SENT, R:close CLOSE_RCVD
    TUNED: S:open OPEN_SENT, R:open OPEN_RCVD, S:close CLOSE_SENT, R:close CLOSE_RCVD
    OPEN_SENT: R:open-ok OPENED, S:close CLOSE_SENT, R:close CLOSE_RCVD
    OPEN_RCVD: S:open-ok OPENED, S:close CLOSE_SENT, R:close CLOSE_RCVD
    OPENED: S:frame OPENED, R:frame OPENED, S:close CLOSE_SENT, R:close CLOSE_RCVD
    CLOSE_SENT: R:close-ok END, R:close CLOSE_SENT, S:close-ok CLOSE_SENT
    CLOSE_RCVD: S:frame CLOSE_RCVD, S:close CLOSE_SENT, S:close-ok CLOSED, R:close CLOSE_RCVD
    CLOSED: R:close CLOSED, S:close-ok CLOSED, R:close-ok END
    """,
)
"""State, step, next state; `frame` is any method or content, and a heartbeat is none.

In CLOSE_RCVD an end may still answer what came before the close, as its channels come to it, with
a close of its own too. In CLOSED it has answered, and the transport is the peer's to end.
"""

CHANNEL_TABLE: Table[ChannelState] = _read(
    ChannelState,
    """
    CLOSED: S:open OPEN_SENT, R:open OPEN_RCVD
    OPEN_SENT: R:open-ok OPENED, S:close CLOSE_SENT, R:close CLOSE_RCVD
    OPEN_RCVD: S:open-ok OPENED, R:frame OPEN_RCVD, S:close CLOSE_SENT, R:close CLOSE_RCVD
    OPENED: S:frame OPENED, R:frame OPENED, S:close CLOSE_SENT, R:close CLOSE_RCVD
    CLOSE_SENT: R:close-ok CLOSED, R:close CLOSE_SENT, S:close-ok CLOSE_SENT
    CLOSE_RCVD: S:open-ok CLOSE_RCVD, S:frame CLOSE_RCVD, S:close CLOSE_SENT, S:close-ok CLOSED, \
        R:close CLOSE_RCVD, R:close-ok CLOSE_RCVD
    """,
)
"""State, step, next state. In CLOSE_SENT what comes has no effect until close or close-ok.

In CLOSE_RCVD an end may still answer what came before the close, with a close of its own too; a
close-ok that nobody has asked for frees the channel's number. A client need not wait for open-ok:
what it sends before waits in the channel's mailbox.
"""


def next_state(table: Table[S], state: S, step: Step, *, sent: bool) -> S | None:
    """The state to which a step leads, or None if the step is not legal in this state."""
    return table[state].get((sent, step))


def require(table: Table[S], state: S, step: Step, what: str, word: str) -> S:
    """The state to which a step of this end leads.

    Args:
        table: one of the two.
        state: the present state.
        step: what this end wants to send.
        what: whose state it is, for the error text.
        word: what it wants to send, for the error text.

    Raises:
        LocalProtocolError: the step is not legal now; the text lists what is.
    """
    following = table[state].get((True, step))
    if following is None:
        legal = [one.value for sent, one in table[state] if sent]
        raise LocalProtocolError(
            f"{what} is in state {state.value}: {word} cannot be sent; legal now: "
            + (", ".join(legal) or "wait for the peer")
        )
    return following
