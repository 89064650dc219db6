"""A small link as a model for the explorer: two ends, and a pipe in each direction.

A state holds the sender (delivery-count, credit, messages left), the receiver (delivery-count,
grants issued, furthest limit ever granted) and what is in flight: transfers, which are alike, and
flows in their order. There are four moves. A state is bad if the sender may send beyond the
furthest limit that was ever granted. (A receiver that lowers its credit gets messages beyond its
*last* word with every rule; that is no fault, and no state here is bad because of it.)

The sender's credit comes from the rule, with the very function that the broker's links use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from workbench import serial
from workbench.frontends import CreditRule
from workbench.notebook import WrongValueError

from .action import refusal
from .rules import rule_named

SEND_FLOW = "send-flow"
SEND_TRANSFER = "send-transfer"
TRANSFER_ARRIVES = "transfer-arrives"
FLOW_ARRIVES = "flow-arrives"
OTHER_TRANSFER = "send-other"
"""A move beside the four: a transfer over another link of the session (see `beliefs`)."""
MOVES = (SEND_FLOW, SEND_TRANSFER, TRANSFER_ARRIVES, FLOW_ARRIVES)

Flows = tuple[tuple[int, int], ...]
LinkState = tuple[int, int, int, int, int, int, int, Flows]
"""(sender's delivery-count, credit, messages left; receiver's delivery-count, grants issued,
furthest limit; transfers in flight; flows in flight as (delivery-count, link-credit))."""


@dataclass(frozen=True, slots=True)
class LinkView:
    """A state with names, in the state's order; counts in messages."""

    snd_delivery_count: int
    snd_link_credit: int
    messages_left: int
    rcv_delivery_count: int
    grants_issued: int
    furthest_limit: int
    transfers_in_flight: int
    flows_in_flight: Flows

    @property
    def allowed(self) -> int:
        """How many more the sender may send by the furthest limit ever granted."""
        return serial.diff(self.furthest_limit, self.snd_delivery_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkModel:
    """One link.

    Attributes:
        messages: that the sender has.
        grants: link-credit of the receiver's flows, in order.
        rule: of the sender.
        initial_delivery_count: with which both ends begin.
        first_credit: credit that both ends have agreed on before the first move.

    Raises:
        WrongValueError: a number is not legal; the text says what is.
    """

    messages: int
    grants: tuple[int, ...]
    rule: CreditRule = field(default_factory=lambda: rule_named("spec").rule)
    initial_delivery_count: int = 0
    first_credit: int = 0

    def __post_init__(self) -> None:
        first = self.initial_delivery_count
        for name, value in (
            ("messages", self.messages),
            ("initial_delivery_count", first),
            ("first_credit", self.first_credit),
            *(("a grant", grant) for grant in self.grants),
        ):
            if isinstance(value, bool) or not isinstance(value, int):
                raise WrongValueError(refusal("model.no-number", name=name, value=repr(value)))
        if not 0 <= first <= serial.MAX:
            raise WrongValueError(refusal("model.first-count", first=first, most=serial.MAX))
        if self.messages < 0:
            raise WrongValueError(refusal("model.messages", messages=self.messages))
        credits = (*self.grants, self.first_credit)
        if min(credits) < 0:
            raise WrongValueError(refusal("model.grant", credit=min(credits)))
        if self.messages + max(credits) >= serial.HALF:
            told = {"messages": self.messages, "credit": max(credits), "half": serial.HALF}
            raise WrongValueError(refusal("model.too-much", **told))

    @property
    def initial(self) -> LinkState:
        """Nothing in flight; the sender has the first credit."""
        count = self.initial_delivery_count
        limit = serial.add(count, self.first_credit)
        return (count, self.first_credit, self.messages, count, 0, limit, 0, ())

    def successors(self, state: LinkState) -> Iterable[tuple[str, LinkState]]:
        """The moves that are possible, in the order of `MOVES`."""
        dc_snd, credit, left, dc_rcv, issued, limit, transfers, flows = state
        if issued < len(self.grants):
            granted = self.grants[issued]
            reach = serial.add(dc_rcv, granted)
            furthest = reach if serial.diff(reach, limit) > 0 else limit
            flying = (*flows, (dc_rcv, granted))
            yield SEND_FLOW, (dc_snd, credit, left, dc_rcv, issued + 1, furthest, transfers, flying)
        if credit > 0 and left > 0:
            count, sent = serial.add(dc_snd, 1), transfers + 1
            yield SEND_TRANSFER, (count, credit - 1, left - 1, dc_rcv, issued, limit, sent, flows)
        if transfers:
            count, flying_on = serial.add(dc_rcv, 1), transfers - 1
            yield TRANSFER_ARRIVES, (dc_snd, credit, left, count, issued, limit, flying_on, flows)
        if flows:
            flow_count, flow_credit = flows[0]
            after = self.rule(flow_count, flow_credit, dc_snd, credit)
            yield FLOW_ARRIVES, (dc_snd, after, left, dc_rcv, issued, limit, transfers, flows[1:])

    def bad(self, state: LinkState) -> bool:
        """The sender may send beyond the furthest limit."""
        allowed = serial.diff(state[5], state[0])
        return state[1] > allowed

    def legal(self, state: LinkState) -> dict[str, str | None]:
        """For each move None if it is possible, else why not."""
        _, credit, left, _, issued, _, transfers, flows = state
        no_transfer = None
        if left == 0:
            no_transfer = refusal("move.no-message-left")
        elif credit == 0:
            no_transfer = refusal("move.no-credit")
        return {
            SEND_FLOW: None
            if issued < len(self.grants)
            else refusal("move.no-flow-left", flows=len(self.grants)),
            SEND_TRANSFER: no_transfer,
            TRANSFER_ARRIVES: None if transfers else refusal("move.none-flies", kind="transfer"),
            FLOW_ARRIVES: None if flows else refusal("move.none-flies", kind="flow"),
        }

    def after(self, state: LinkState, move: str) -> LinkState:
        """The state that a move leads to.

        Raises:
            WrongValueError: if it is not possible; the text says why and what is.
        """
        for name, reached in self.successors(state):
            if name == move:
                return reached
        legal = self.legal(state)
        possible = ", ".join(name for name, why in legal.items() if why is None)
        why = legal[move] if move in legal else refusal("move.unknown", listed=", ".join(MOVES))
        listed = possible or refusal("move.nothing")
        raise WrongValueError(refusal("move.impossible", move=move, why=why, listed=listed))

    def describe(self, state: LinkState) -> LinkView:
        """The state with names."""
        return LinkView(*state)
