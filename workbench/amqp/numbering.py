"""Handing out the numbers by which an end names its sessions (channels) and links (handles)."""

from collections.abc import Mapping

from workbench.amqp.errors import LocalProtocolError

__all__ = ["free_number"]


def free_number(kind: str, taken: Mapping[int, object], wanted: int | None, highest: int) -> int:
    """A number that is not taken.

    Args:
        kind: `channel` or `handle`, for the error text.
        taken: what is in use.
        wanted: this one; None takes the lowest free one.
        highest: the peer accepts no higher one.

    Raises:
        LocalProtocolError: it is in use or too high.
    """
    number = wanted
    if number is None:
        number = next(n for n in range(len(taken) + 1) if n not in taken)
    if number in taken or not 0 <= number <= highest:
        raise LocalProtocolError(
            f"{kind} {number} cannot be used: {len(taken)} are in use, and the peer's {kind}-max "
            f"is {highest}; legal now: a free {kind} up to that, or give one back first"
        )
    return number
