"""Formulas with live numbers: what a frame says, put into the rule of the clause.

Every number comes from the rows: fields of the frame, counters before it, counters after it. The
result is worked out here and compared with the counter that the end logged; where the two differ,
the text says so, for then either the end or this rule is wrong, and that is worth a look.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from workbench import serial
from workbench.languages import MINUS, digits, phrase

say = partial(phrase, "steps")
MODULUS_TEXT = "(mod 2³²)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A rule of the specification and the same rule with the numbers of this step.

    Attributes:
        symbolic: in the specification's words; `_snd`, `_rcv`, `_flow` say whose value it is.
        numbers: such as `20 + 6 − 21 = 5`.
        agrees: whether the result is what the end logged; None if it logged none.
    """

    symbolic: str
    numbers: str
    agrees: bool | None = None


LINK_CREDIT = "link-credit_snd := delivery-count_rcv + link-credit_rcv − delivery-count_snd"
LINK_CREDIT_INITIAL = (
    "link-credit_snd := initial-delivery-count + link-credit_rcv − delivery-count_snd"
)
SESSION_WINDOW = (
    "remote-incoming-window := next-incoming-id_flow + incoming-window_flow − next-outgoing-id"
)
SESSION_WINDOW_INITIAL = (
    "remote-incoming-window := initial-outgoing-id + incoming-window_flow − next-outgoing-id"
)
DELIVERY_LIMIT = "delivery-limit := delivery-count + link-credit"
TRANSFER = "delivery-count := delivery-count + 1; link-credit := link-credit − 1"
TRANSFER_OUT = (
    "next-outgoing-id := next-outgoing-id + 1; remote-incoming-window := remote-incoming-window − 1"
)
TRANSFER_IN = "next-incoming-id := next-incoming-id + 1"
DRAINED = "delivery-count_snd := delivery-count_snd + link-credit_snd; link-credit_snd := 0"
COUNT_HEARD = "link-credit_rcv := link-credit_rcv − (delivery-count_snd − delivery-count_rcv)"


def link_credit(
    count_rcv: int, credit_rcv: int, count_snd: int, logged: int | None, *, initial: bool = False
) -> Formula:
    """The sender's credit after a flow of the receiver [AMQP 1.0, 2.6.7]; floored at 0.

    Args:
        count_rcv: delivery-count in the flow, or the initial one if the flow has none.
        credit_rcv: link-credit in the flow.
        count_snd: the sender's own delivery-count.
        logged: link-credit that the sender logged after it.
        initial: the flow had no delivery-count.
    """
    symbolic = LINK_CREDIT_INITIAL if initial else LINK_CREDIT
    return _limit_minus(symbolic, count_rcv, credit_rcv, count_snd, logged)


def session_window(
    next_incoming_id: int,
    incoming_window: int,
    next_outgoing_id: int,
    logged: int | None,
    *,
    initial: bool = False,
) -> Formula:
    """How many transfer frames may still be sent after a flow [AMQP 1.0, 2.5.6]; floored at 0.

    Args:
        next_incoming_id: of the flow, or the own initial next-outgoing-id if the flow has none.
        incoming_window: of the flow.
        next_outgoing_id: of the end that received it.
        logged: remote-incoming-window that it logged after it.
        initial: the flow had no next-incoming-id.
    """
    symbolic = SESSION_WINDOW_INITIAL if initial else SESSION_WINDOW
    return _limit_minus(symbolic, next_incoming_id, incoming_window, next_outgoing_id, logged)


def _limit_minus(symbolic: str, base: int, grant: int, own: int, logged: int | None) -> Formula:
    """`base + grant − own` in serial arithmetic, shown with what wraps and what is floored."""
    shown = f"{base} + {grant} {MINUS} {own}"
    try:
        # The grant may be as large as 2³²−1, so only the two serial numbers are compared.
        result = grant - serial.diff(own, base)
    except serial.SerialError:
        return Formula(
            symbolic=symbolic, numbers=say("formula.undefined", numbers=shown, base=base, own=own)
        )
    numbers = shown + _equals(base + grant - own, result)
    return _formula(symbolic, _against(*_floored(numbers, result, logged), logged))


def delivery_limit(count: int, credit: int) -> Formula | None:
    """Up to which delivery-count the sender may go, by the receiver's own numbers [2.6.7]."""
    limit = _advanced(count, credit)
    if limit is None:
        return None
    return Formula(
        symbolic=DELIVERY_LIMIT, numbers=f"{count} + {credit}" + _equals(count + credit, limit)
    )


def transfer(
    count: int | None, credit: int | None, count_after: int | None, credit_after: int | None
) -> Formula | None:
    """What one message does to one end's counters [2.6.7]; None if neither is known before."""
    return _spent(TRANSFER, count, credit, count_after, credit_after)


def transfer_out(
    next_id: int | None, window: int | None, next_id_after: int | None, window_after: int | None
) -> Formula | None:
    """What one transfer frame does to the session of the end that sends it [2.5.6]."""
    return _spent(TRANSFER_OUT, next_id, window, next_id_after, window_after)


def _spent(
    symbolic: str, count: int | None, left: int | None, count_after: int | None, after: int | None
) -> Formula | None:
    """One more is counted, and one less is left."""
    parts: list[_Part] = []
    if count is not None:
        parts.append(_counted(count, count_after))
    if left is not None:
        text = f"{digits(left)} {MINUS} 1 = {digits(left - 1)}"
        parts.append(_against(*_floored(text, left - 1, after), after))
    return _formula(symbolic, *parts) if parts else None


def transfer_in(next_id: int | None, next_id_after: int | None) -> Formula | None:
    """What one transfer frame does to the session of the end that receives it [2.5.6]."""
    return None if next_id is None else _formula(TRANSFER_IN, _counted(next_id, next_id_after))


def drained(
    count: int, credit: int, count_after: int | None, credit_after: int | None
) -> Formula | None:
    """The sender gives its unused credit back [2.6.7]: the count takes it, the limit stays."""
    moved = _advanced(count, credit)
    if moved is None:
        return None
    text = f"{count} + {credit}" + _equals(count + credit, moved)
    return _formula(
        DRAINED, _against(text, moved, count_after), _against(f"{credit} → 0", 0, credit_after)
    )


def count_heard(
    count_rcv: int, credit_rcv: int, count_snd: int, credit_after: int | None
) -> Formula | None:
    """The receiver hears a delivery-count that has moved on [2.6.7]: its credit shrinks alike."""
    try:
        moved = serial.diff(count_snd, count_rcv)
    except serial.SerialError:
        return None
    result = credit_rcv - moved
    text = f"{credit_rcv} {MINUS} ({count_snd} {MINUS} {count_rcv})"
    text += _equals(credit_rcv - (count_snd - count_rcv), result)
    return _formula(COUNT_HEARD, _against(*_floored(text, result, credit_after), credit_after))


_Part = tuple[str, bool | None]
"""Numbers of one counter, and whether the end logged the same; None if it logged none."""


def _floored(text: str, result: int, logged: int | None) -> tuple[str, int]:
    """What is left is never below 0, unless the end has logged it so."""
    return (f"{text} → 0", 0) if result < 0 and logged != result else (text, result)


def _advanced(value: int, by: int) -> int | None:
    """`value + by` for any `by` that fits a uint; None for a number that no frame can carry."""
    return serial.advanced(value, by) if 0 <= by <= serial.MAX else None


def _counted(value: int, after: int | None) -> _Part:
    following = serial.add(value, 1)
    return _against(f"{value} + 1" + _equals(value + 1, following), following, after)


def _equals(plain: int, result: int) -> str:
    if plain == result:
        return f" = {digits(result)}"
    return f" ≡ {digits(result)} {MODULUS_TEXT}"


def _against(text: str, result: int, logged: int | None) -> _Part:
    if logged is None:
        return text, None
    if result == logged:
        return text, True
    return say("formula.otherwise", numbers=text, logged=digits(logged)), False


def _formula(symbolic: str, *parts: _Part) -> Formula:
    checks = [agrees for _, agrees in parts if agrees is not None]
    return Formula(
        symbolic=symbolic,
        numbers="; ".join(text for text, _ in parts),
        agrees=all(checks) if checks else None,
    )
