"""Ranges of delivery-ids, as dispositions name them [2.7.6]: serial numbers that may wrap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from workbench import serial
from workbench.amqp.errors import LocalProtocolError

if TYPE_CHECKING:
    from workbench.amqp.delivery import OutgoingDelivery
    from workbench.amqp.sender import SenderLink

__all__ = ["in_range", "runs"]

D = TypeVar("D")


def in_range(known: Mapping[int, D], first: int, last: int) -> list[D]:
    """What is known under the ids from `first` to `last`, in their order.

    Takes time by the smaller of the range and what is known: a peer may name a range of any size.

    Raises:
        LocalProtocolError: `last` comes before `first`.
    """
    try:
        span = serial.diff(last, first)
    except serial.SerialError as error:
        raise LocalProtocolError(f"{first}..{last} is no range: {error}") from error
    if span < 0:
        raise LocalProtocolError(
            f"{first}..{last} is no range: last comes before first; legal: {last}..{first}"
        )
    if span < len(known):
        ids: Iterable[int] = (serial.add(first, step) for step in range(span + 1))
        return [known[number] for number in ids if number in known]
    distance = _from(first)
    inside = [number for number in known if 0 <= distance(number) <= span]
    return [known[number] for number in sorted(inside, key=distance)]


def _from(first: int) -> Callable[[int], int]:
    """How far a number lies behind `first`; half a circle away counts as outside."""

    def distance(number: int) -> int:
        try:
            return serial.diff(number, first)
        except serial.SerialError:
            return -1

    return distance


def runs(deliveries: Iterable[OutgoingDelivery]) -> Iterator[tuple[int, int, SenderLink]]:
    """Cuts deliveries, in order of their ids, into runs of consecutive ids of one link."""
    run: tuple[int, int, SenderLink] | None = None
    for delivery in deliveries:
        number, link = delivery.delivery_id, delivery.link
        if run is not None and run[2] is link and number == serial.add(run[1], 1):
            run = (run[0], number, link)
            continue
        if run is not None:
            yield run
        run = (number, number, link)
    if run is not None:
        yield run
