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


def _limit_minus(
    symbolic: tuple[str, str],
    base: int,
    grant: int,
    own: int,
    logged: int | None,
    *,
    initial: bool = False,
) -> Formula:
    """`base + grant − own` in serial arithmetic, shown with what wraps and what is cut off.

    Args:
        symbolic: the rule, and the same of a frame that was sent before its author knew of a base.
        base: the count or id in the flow; where it has none, the one that was begun with.
        grant: link-credit, or incoming-window, of the flow.
        own: the count or id of the end that received it.
        logged: what it logged after it.
        initial: the flow had no base.
    """
    rule = symbolic[initial]
    shown = f"{base} + {grant} {MINUS} {own}"
    try:
        # The grant may be as large as 2³²−1, so only the two serial numbers are compared.
        result = grant - serial.diff(own, base)
    except serial.SerialError:
        return Formula(
            symbolic=rule, numbers=say("formula.undefined", numbers=shown, base=base, own=own)
        )
    numbers = shown + _equals(base + grant - own, result)
    return _formula(rule, _against(*_bounded(numbers, result, logged), logged))


link_credit = partial(_limit_minus, (LINK_CREDIT, LINK_CREDIT_INITIAL))
"""The sender's credit after a flow of the receiver [AMQP 1.0, 2.6.7]."""
session_window = partial(_limit_minus, (SESSION_WINDOW, SESSION_WINDOW_INITIAL))
"""How many transfer frames may still be sent after a flow [AMQP 1.0, 2.5.6]."""


def delivery_limit(count: int, credit: int) -> Formula | None:
    """Up to which delivery-count the sender may go, by the receiver's own numbers [2.6.7]."""
    limit = _advanced(count, credit)
    if limit is None:
        return None
    return Formula(
        symbolic=DELIVERY_LIMIT, numbers=f"{count} + {credit}" + _equals(count + credit, limit)
    )


def _spent(
    symbolic: str, count: int | None, left: int | None, count_after: int | None, after: int | None
) -> Formula | None:
    """One more is counted, and one less is left."""
    parts: list[_Part] = []
    if count is not None:
        parts.append(_counted(count, count_after))
    if left is not None:
        text = f"{digits(left)} {MINUS} 1 = {digits(left - 1)}"
        parts.append(_against(*_bounded(text, left - 1, after), after))
    return _formula(symbolic, *parts) if parts else None


transfer = partial(_spent, TRANSFER)
"""What one message does to one end's counters [2.6.7]; None if neither is known before."""
transfer_out = partial(_spent, TRANSFER_OUT)
"""What one transfer frame does to the session of the end that sends it [2.5.6]."""


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
    return _formula(COUNT_HEARD, _against(*_bounded(text, result, credit_after), credit_after))


_Part = tuple[str, bool | None]
"""Numbers of one counter, and whether the end logged the same; None if it logged none."""


def _bounded(text: str, result: int, logged: int | None) -> tuple[str, int]:
    """What is left is from 0 to what a frame can carry, unless the end has logged it otherwise."""
    left = min(max(0, result), serial.MAX)
    return (text, result) if result in (left, logged) else (f"{text} → {left}", left)


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
