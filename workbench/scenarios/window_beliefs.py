"""What people believe about a session's window, and a model that puts each belief to the test.

As in `beliefs`, a belief says what the sender's window is after each thing that happens, and beside
it runs the truth. The moves are acts of scenario `windows`, each made when the one before has come
to rest: by then the sender has sent all that credit and window allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .misconception import Misconception
from .run import Run, run

HOLD = "hold"
ALARM = "alarm"
BEGIN_SESSION = "begin_session"
Act = tuple[str, dict[str, Any]]


class Heard(NamedTuple):
    """A flow of the receiver, as its sender hears it; counts of transfer frames, and of messages.

    Attributes:
        believed: the window before it.
        actual: the window after it, by the rule of 2.5.6.
        window: the incoming-window that it says.
        link_credit: the credit that it grants; None if it names no link.
        first: the incoming-window that the receiver announced in its begin.
    """

    believed: int
    actual: int
    window: int
    link_credit: int | None
    first: int


def _frame_less(believed: int, first: bool) -> int:
    return max(0, believed - 1)


def _message_less(believed: int, first: bool) -> int:
    return max(0, believed - first)


def _as_told(heard: Heard) -> int:
    return heard.actual


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFlow:
    """What the receiver says next: credit for its link, or a window for the session."""

    link_credit: int | None = None
    frames: int | None = None

    @property
    def act(self) -> Act:
        """The act of scenario `windows` by which it is said."""
        if self.frames is not None:
            return "open_window", {"frames": self.frames}
        return "grant", {"link_credit": self.link_credit}

    def __str__(self) -> str:
        return f"credit {self.link_credit}" if self.frames is None else f"window {self.frames}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowBelief(Misconception):
    """A way of thinking about a session's window.

    Attributes:
        on_send: the sender's window after a transfer frame has left, from what it was and whether
            the frame is the first of its message.
        on_flow: after a flow of the receiver has arrived.
        on_closed: after the sender has closed the window of the other direction; None: no matter.
        on_begin: after another session has begun on the connection; None: no matter.
        on_other: after a transfer frame has left on another session; None: no matter.
        flows: what the receiver says in the search for a counterexample.
    """

    on_send: Callable[[int, bool], int] = _frame_less
    on_flow: Callable[[Heard], int] = _as_told
    on_closed: Callable[[int], int] | None = None
    on_begin: Callable[[int], int] | None = None
    on_other: Callable[[int], int] | None = None
    flows: tuple[WindowFlow, ...] = (
        WindowFlow(link_credit=2),
        WindowFlow(link_credit=2),
        WindowFlow(frames=2),
    )


WINDOW_BELIEFS = {
    each.name: each
    for each in (
        WindowBelief(name="the window counts messages", on_send=_message_less),
        WindowBelief(
            name="credit opens the window",
            on_flow=lambda heard: heard.first if heard.link_credit else heard.actual,
        ),
        WindowBelief(
            name="credit counts frames",
            on_flow=lambda heard: heard.actual if heard.link_credit is None else heard.link_credit,
        ),
        WindowBelief(name="the window is what the flow says", on_flow=lambda heard: heard.window),
        WindowBelief(name="windows add up", on_flow=lambda heard: heard.believed + heard.window),
        WindowBelief(
            name="credit is enough",
            on_flow=lambda heard: max(heard.believed, heard.actual),
            flows=(WindowFlow(link_credit=1), WindowFlow(frames=0)),
        ),
        WindowBelief(name="a closed window stops everything", on_closed=lambda believed: 0),
        WindowBelief(
            name="the window is the connection's", on_other=lambda believed: max(0, believed - 1)
        ),
        WindowBelief(name="the window is shared out", on_begin=lambda believed: believed // 2),
    )
}


class WindowState(NamedTuple):
    """Where both ends of a session stand, and what is believed.

    Attributes:
        sent: transfer frames that the sender has sent.
        window: its remote-incoming-window.
        credit: its link-credit.
        rest: frames of the message that it has begun, and not sent.
        left: messages that it has not begun.
        came: transfer frames that the receiver has counted.
        own: the receiver's incoming-window.
        issued: flows that the receiver has sent.
        held: whether what the sender sends is held on the wire.
        acted: whether there was an alarm, or another session.
        believed: the window by the belief.
        parted: the window by the rule and by the belief where the two differed first.
    """

    sent: int
    window: int
    credit: int
    rest: int
    left: int
    came: int
    own: int
    issued: int
    held: bool
    acted: bool
    believed: int
    parted: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowModel:
    """A session with its truth and a belief beside it; a state is bad if they have differed.

    Attributes:
        belief: what is compared with the truth.
        messages: that the sender has.
        frames_each: transfer frames of a message.
        window: that the receiver announces in its begin.
        express: transfer frames that another session's window lets through.
    """

    belief: WindowBelief
    messages: int = 4
    frames_each: int = 2
    window: int = 3
    express: int = 3

    @property
    def initial(self) -> WindowState:
        """The window as it was announced, and no credit."""
        window = self.window
        return WindowState(
            0, window, 0, 0, self.messages, 0, window, 0, held=False, acted=False, believed=window
        )

    def successors(self, state: WindowState) -> Iterable[tuple[str, WindowState]]:
        """The possible moves; a move that is a flow is named by what it says."""
        belief = self.belief
        if state.issued < len(belief.flows):
            flow = belief.flows[state.issued]
            yield str(flow), self._flowed(state, flow)
        if not state.held and not state.acted:
            yield HOLD, state._replace(held=True)
        if belief.on_closed is not None and not state.acted:
            after = state._replace(acted=True, believed=belief.on_closed(state.believed))
            yield ALARM, _compared(after)
        if (belief.on_begin or belief.on_other) and not state.acted and not state.held:
            yield BEGIN_SESSION, self._begun(state)

    def bad(self, state: WindowState) -> bool:
        """Belief and truth have differed."""
        return state.parted is not None

    def differing(self, state: WindowState) -> tuple[int, int]:
        """The window by the rule, and by the belief, where they differed first."""
        assert state.parted is not None
        return state.parted

    def play(self, moves: Iterable[str]) -> Run:
        """The moves on the real broker, each when the one before has come to rest."""
        flows = iter(self.belief.flows)
        others: dict[str, Act] = {
            HOLD: ("hold", {"direction": "b2c"}),
            ALARM: ("alarm", {}),
            BEGIN_SESSION: ("begin_session", {}),
        }
        played = run(
            "windows",
            "rmq4.3",
            {
                "messages": self.messages,
                "message_bytes": 480 * (self.frames_each - 1) + 240,
                "max_frame_size": 512,
                "client_window": self.window,
            },
        )
        return played.act_each(others.get(move) or next(flows).act for move in moves)

    def _flowed(self, state: WindowState, flow: WindowFlow) -> WindowState:
        """A flow arrives, and the sender sends all that it may."""
        own = state.own if flow.frames is None else flow.frames
        window = max(0, state.came + own - state.sent)
        credit = state.credit if flow.link_credit is None else flow.link_credit
        heard = Heard(state.believed, window, own, flow.link_credit, self.window)
        after = _compared(
            state._replace(
                window=window,
                own=own,
                credit=credit,
                issued=state.issued + 1,
                believed=self.belief.on_flow(heard),
            )
        )
        while after.window and (after.rest or (after.credit and after.left)):
            after = _compared(self._sends(after))
        if after.held:
            return after
        return after._replace(came=after.sent, own=after.own - (after.sent - after.came))

    def _sends(self, state: WindowState) -> WindowState:
        """One transfer frame leaves."""
        first = not state.rest
        return state._replace(
            sent=state.sent + 1,
            window=state.window - 1,
            credit=state.credit - first,
            rest=(self.frames_each if first else state.rest) - 1,
            left=state.left - first,
            believed=self.belief.on_send(state.believed, first),
        )

    def _begun(self, state: WindowState) -> WindowState:
        """Another session begins, and what its window lets through is sent."""
        belief, after = self.belief, state._replace(acted=True)
        if belief.on_begin is not None:
            after = _compared(after._replace(believed=belief.on_begin(after.believed)))
        for _ in range(self.express if belief.on_other else 0):
            assert belief.on_other is not None
            after = _compared(after._replace(believed=belief.on_other(after.believed)))
        return after


def _compared(state: WindowState) -> WindowState:
    """The state with the first difference of belief and truth, if this is it."""
    if state.parted is not None or state.believed == state.window:
        return state
    return state._replace(parted=(state.window, state.believed))
