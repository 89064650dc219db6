"""Serial number arithmetic [RFC 1982] for 32 bits, and link credit, which is counted by it.

AMQP's `sequence-no`, `transfer-number` and `delivery-number` [AMQP 1.0, 2.8.6, 2.8.8, 2.8.10] count
on from 4294967295 to 0. Which of two such numbers is the later one is decided by the shorter way
round the circle. Two numbers exactly half a circle apart have no order: asking for it is an error.

Rule of the project: no other module cuts a number to 32 bits.
"""

from enum import Enum

__all__ = [
    "HALF",
    "MAX",
    "MODULUS",
    "Order",
    "SerialError",
    "Unwrapped",
    "add",
    "advanced",
    "compare",
    "diff",
    "following",
    "link_credit_snd",
    "signed",
    "steps",
]

MODULUS = 2**32
"""How many serial numbers there are."""

HALF = 2**31
"""Half a circle: the distance at which two numbers have no order."""

MAX = MODULUS - 1
"""The greatest serial number."""


class SerialError(ArithmeticError):
    """An operation that serial number arithmetic does not define."""


class Order(Enum):
    """How one serial number stands to another."""

    LESS = -1
    EQUAL = 0
    GREATER = 1


def add(s: int, n: int) -> int:
    """The serial number `n` steps after `s` [RFC 1982, 3.1].

    Args:
        s: a serial number.
        n: how many steps, 0 to 2147483647.

    Returns:
        ``(s + n) mod 4294967296``.

    Raises:
        SerialError: `n` is out of range; what lies so far ahead would count as behind.
    """
    if not 0 <= n < HALF:
        raise SerialError(f"cannot add {n} to serial number {s}: legal is 0 to {HALF - 1}")
    return (s + n) % MODULUS


def following(s: int) -> int:
    """The serial number after `s`."""
    return (s + 1) % MODULUS


def advanced(s: int, credit: int) -> int:
    """A delivery-count that moves on by a whole credit, 0 to 4294967295, as drain asks [2.6.7]."""
    return (s + credit) % MODULUS


def diff(a: int, b: int) -> int:
    """The signed distance from `b` to `a`, the shorter way round.

    Args:
        a: a serial number.
        b: a serial number.

    Returns:
        `a` minus `b`, between -2147483647 and 2147483647; positive if `a` is the later one.

    Raises:
        SerialError: the two are exactly 2147483648 apart.
    """
    distance = (a - b) % MODULUS
    if distance == HALF:
        raise SerialError(f"serial numbers {a} and {b} are {HALF} apart: neither is the later one")
    return distance if distance < HALF else distance - MODULUS


def signed(a: int, b: int) -> int:
    """The signed distance from `b` to `a` for who reads what others wrote, and must not stop at it.

    Two numbers half a circle apart have no order; here `a` counts as behind.

    Args:
        a: a serial number.
        b: a serial number.

    Returns:
        `a` minus `b`, between -2147483648 and 2147483647.
    """
    return (a - b + HALF) % MODULUS - HALF


def steps(a: int, b: int) -> int:
    """How many steps forward lead from `b` to `a`, for who knows that there was no step back.

    Args:
        a: a serial number.
        b: a serial number.

    Returns:
        `a` minus `b` modulo 4294967296, 0 to 4294967295.
    """
    return (a - b) % MODULUS


def compare(a: int, b: int) -> Order:
    """How `a` stands to `b` [RFC 1982, 3.2].

    Args:
        a: a serial number.
        b: a serial number.

    Returns:
        `LESS` if `a` comes before `b`, `EQUAL`, or `GREATER`.

    Raises:
        SerialError: the two are exactly 2147483648 apart.
    """
    distance = diff(a, b)
    if distance == 0:
        return Order.EQUAL
    return Order.GREATER if distance > 0 else Order.LESS


def link_credit_snd(delivery_count_rcv: int, link_credit_rcv: int, delivery_count_snd: int) -> int:
    """The sender's credit after a flow of the receiver [AMQP 1.0, 2.6.7].

    ``link-credit(snd) := delivery-count(rcv) + link-credit(rcv) - delivery-count(snd)``, floored
    at 0, because the receiver may cut credit while transfers fly. A receiver that counts more than
    was sent does not get more than the largest credit there is.

    Args:
        delivery_count_rcv: delivery-count of the flow.
        link_credit_rcv: link-credit of the flow, in deliveries.
        delivery_count_snd: the sender's own count.

    Raises:
        SerialError: the two counts are half a circle apart.
    """
    credit = link_credit_rcv - diff(delivery_count_snd, delivery_count_rcv)
    return min(max(0, credit), MAX)


class Unwrapped:
    """Serial numbers of one thing that counts, on a line that does not begin again at 0."""

    def __init__(self) -> None:
        self._last: int | None = None

    def at(self, value: int) -> int:
        """Where a number lies: near the one that was asked for last; the first lies where it is.

        Two that are half a circle apart have no nearer side: the later one lies where it is.
        """
        if self._last is None:
            self._last = value
        else:
            try:
                self._last += diff(value, self._last % MODULUS)
            except SerialError:
                self._last = value
        return self._last
