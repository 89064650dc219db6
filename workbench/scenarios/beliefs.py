"""What people believe about link credit, and the shortest schedule that shows each belief wrong.

The same search serves what is believed about windows (`window_beliefs`).

A belief says what the sender's credit is after each thing that happens. Beside it runs the truth,
with the functions that the broker's links use. The explorer looks for the nearest state in which
the two numbers differ; that schedule is then played on the real broker. None is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench import serial
from workbench.notebook import WrongValueError
from workbench.serial import link_credit_snd
from workbench.sim.explorer import Bounds, explore

from .action import refusal
from .commit_beliefs import COMMIT_BELIEFS, CommitBelief
from .link_model import (
    FLOW_ARRIVES,
    OTHER_TRANSFER,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
)
from .misconception import Misconception, say
from .race import OTHER_CREDIT, FlowPlan
from .run import Run, run
from .schedules import moved, seq_of_move
from .window_beliefs import WINDOW_BELIEFS, WindowBelief, WindowModel

BOUNDS = Bounds(states=100_000)

OnFlow = Callable[[int, FlowPlan], int]
OnEvent = Callable[[int, int], int]


def _same(believed: int, message_bytes: int) -> int:
    return believed


def _one_less(believed: int, message_bytes: int) -> int:
    return max(0, believed - 1)


def _octets_less(believed: int, message_bytes: int) -> int:
    return max(0, believed - message_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief(Misconception):
    """A way of thinking about link credit.

    Attributes:
        on_send: the sender's credit after it has sent, from what it was and the octets of a body.
        on_arrival: after a transfer has arrived at the receiver.
        on_other: after the sender has sent over another link of the session.
        on_flow: after a flow of the receiver has arrived; None: as the specification says.
        flows: what the receiver says in the search for a counterexample.
        other_link: a second link with credit of its own takes part.
    """

    on_send: OnEvent = _one_less
    on_arrival: OnEvent = _same
    on_other: OnEvent = _same
    on_flow: OnFlow | None = None
    flows: tuple[FlowPlan, ...] = (FlowPlan(3), FlowPlan(6))
    other_link: bool = False


BELIEFS: Mapping[str, Belief] = {
    each.name: each
    for each in (
        Belief(name="adds", on_flow=lambda believed, flow: believed + flow.link_credit),
        Belief(name="sets", on_flow=lambda believed, flow: flow.link_credit),
        Belief(name="decrement on receipt", on_send=_same, on_arrival=_one_less),
        Belief(name="credit is bytes", on_send=_octets_less),
        Belief(
            name="drain is pause",
            on_flow=lambda believed, flow: believed if flow.drain else flow.link_credit,
            flows=(FlowPlan(3), FlowPlan(3, drain=True)),
        ),
        Belief(name="credit is shared by links", on_other=_one_less, other_link=True),
        Belief(
            name="echo grants",
            on_flow=lambda believed, flow: (
                believed + flow.link_credit if flow.echo else flow.link_credit
            ),
            flows=(FlowPlan(3), FlowPlan(3, echo=True)),
        ),
        Belief(
            name="one flow, one message", on_flow=lambda believed, flow: 1, flows=(FlowPlan(3),)
        ),
        Belief(
            name="a grant stands",
            on_flow=lambda believed, flow: max(believed, flow.link_credit),
            flows=(FlowPlan(3), FlowPlan(0)),
        ),
        Belief(
            name="drain grants",
            on_flow=lambda believed, flow: (
                believed + flow.link_credit if flow.drain else flow.link_credit
            ),
            flows=(FlowPlan(3), FlowPlan(3, drain=True)),
        ),
        Belief(
            name="drain waits until credit is used",
            on_flow=lambda believed, flow: flow.link_credit,
            flows=(FlowPlan(3), FlowPlan(3, drain=True)),
        ),
    )
}


NEVER_USED_UP = Belief(name="credit is never used up", on_send=_same)
"""No misconception of people, but the mistake of a client that forgot to subtract."""

ALL: Mapping[str, Belief | WindowBelief] = {
    **BELIEFS,
    **WINDOW_BELIEFS,
    NEVER_USED_UP.name: NEVER_USED_UP,
}
"""For which a schedule can be searched."""

SHOWN: Mapping[str, Belief | WindowBelief | CommitBelief] = {**ALL, **COMMIT_BELIEFS}
"""That can be shown beside the rule."""


def belief_named(name: str) -> Belief | WindowBelief | CommitBelief:
    """The belief of that name, about link credit, a session's window or a commit.

    Raises:
        WrongValueError: if there is none; the text lists the names.
    """
    try:
        return SHOWN[name]
    except KeyError:
        raise WrongValueError(
            refusal("name.belief", name=repr(name), listed=", ".join(SHOWN))
        ) from None


Flows = tuple[tuple[int, FlowPlan], ...]
BeliefState = tuple[int, int, int, int, int, int, Flows, int]
"""(sender's delivery-count, credit, messages left; receiver's delivery-count, flows issued;
transfers in flight; flows in flight with the delivery-count they carry; the believed credit)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefModel:
    """A link with its truth and a belief beside it; a state is bad if they differ.

    Attributes:
        belief: what is compared with the truth.
        messages: that the sender has.
        message_bytes: octets of a message's body.
    """

    belief: Belief
    messages: int = 4
    message_bytes: int = 100

    @property
    def initial(self) -> BeliefState:
        """Nothing granted, nothing in flight."""
        return (0, 0, self.messages, 0, 0, 0, (), 0)

    def successors(self, state: BeliefState) -> Iterable[tuple[str, BeliefState]]:
        """The possible moves."""
        dc_snd, credit, left, dc_rcv, issued, transfers, flows, believed = state
        belief, size = self.belief, self.message_bytes
        if issued < len(belief.flows):
            flying = (*flows, (dc_rcv, belief.flows[issued]))
            yield SEND_FLOW, (dc_snd, credit, left, dc_rcv, issued + 1, transfers, flying, believed)
        if credit > 0 and left > 0:
            after = belief.on_send(believed, size)
            count, sent = serial.add(dc_snd, 1), transfers + 1
            yield SEND_TRANSFER, (count, credit - 1, left - 1, dc_rcv, issued, sent, flows, after)
        if transfers:
            after = belief.on_arrival(believed, size)
            count, flying_on = serial.add(dc_rcv, 1), transfers - 1
            yield TRANSFER_ARRIVES, (dc_snd, credit, left, count, issued, flying_on, flows, after)
        if flows:
            yield FLOW_ARRIVES, self._flow_arrives(state)
        if belief.other_link and left > 0:
            after, rest = belief.on_other(believed, size), left - 1
            yield OTHER_TRANSFER, (dc_snd, credit, rest, dc_rcv, issued, transfers, flows, after)

    def bad(self, state: BeliefState) -> bool:
        """Belief and truth differ."""
        return state[1] != state[7]

    def differing(self, state: BeliefState) -> tuple[int, int]:
        """The credit by the rule, and by the belief."""
        return state[1], state[7]

    def _flow_arrives(self, state: BeliefState) -> BeliefState:
        dc_snd, _, left, dc_rcv, issued, transfers, flows, believed = state
        count, flow = flows[0]
        actual = link_credit_snd(count, flow.link_credit, dc_snd)
        after = actual if self.belief.on_flow is None else self.belief.on_flow(believed, flow)
        if flow.drain:
            # Messages come one by one here, so there is none to send: all credit goes back.
            dc_snd, actual = serial.add(dc_snd, actual), 0
        return (dc_snd, actual, left, dc_rcv, issued, transfers, flows[1:], after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A shortest schedule that shows a belief wrong.

    Attributes:
        belief: which.
        moves: the schedule.
        believed: the credit, or the window, that somebody who believes it expects.
        actual: the same by the rule of 2.6.7, or of 2.5.6.
        states: how many states the explorer looked at until it found the schedule.
    """

    belief: Belief | WindowBelief
    moves: tuple[str, ...]
    believed: int
    actual: int
    states: int
    model: BeliefModel | WindowModel = field(repr=False)

    @property
    def text(self) -> str:
        """In words what the schedule shows."""
        of_window = isinstance(self.belief, WindowBelief)
        return say(
            "counterexample.difference",
            moves=len(self.moves),
            counter="remote-incoming-window" if of_window else "link-credit",
            because=self.belief.because,
            believed=self.believed,
            actual=self.actual,
        )

    def run(self) -> Run:
        """The schedule on the real broker; belief and truth part in its last move."""
        if isinstance(self.model, WindowModel):
            return self.model.play(self.moves)
        belief = self.model.belief
        played = run(
            "race",
            parameters={
                "messages": self.model.messages,
                "grants": ",".join(map(str, belief.flows)),
                "message_bytes": self.model.message_bytes,
                "other_credit": OTHER_CREDIT if belief.other_link else 0,
            },
        )
        return moved(played, self.moves)

    def at(self, played: Run) -> int:
        """`seq` of the row to open a stage at: the one of the move that decides."""
        return seq_of_move(played, len(self.moves) - 1)


def counterexample(
    belief: Belief | WindowBelief | CommitBelief | str,
) -> Counterexample | None:
    """The shortest schedule that shows a belief wrong, found by the explorer.

    Args:
        belief: or its name.

    Returns:
        None if there is none within the bounds: then the belief is right there.

    Raises:
        WrongValueError: no such belief.
    """
    if isinstance(belief, str):
        belief = belief_named(belief)
    if isinstance(belief, CommitBelief):
        return None  # it is shown in the run of a question
    model: Any = (
        WindowModel(belief=belief)
        if isinstance(belief, WindowBelief)
        else BeliefModel(belief=belief)
    )
    found = explore(model, BOUNDS, stop_at_bad=True)
    if found.shortest is None:
        return None
    actual, believed = model.differing(found.bad_states[0])
    return Counterexample(
        belief=belief,
        moves=found.shortest,
        believed=believed,
        actual=actual,
        states=found.states,
        model=model,
    )
