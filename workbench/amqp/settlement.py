"""Ranges of delivery-ids, as dispositions name them [2.7.6]: serial numbers that may wrap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from workbench import serial
from workbench.amqp.errors import LocalProtocolError
from workbench.amqp.performatives import Role

if TYPE_CHECKING:
    from workbench.amqp.delivery import IncomingDelivery, OutgoingDelivery
    from workbench.amqp.sender import SenderLink
    from workbench.amqp.session import Session

__all__ = ["in_range", "ranges", "runs", "settle_ranges"]

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


def ranges(ids: Iterable[int], oldest: int) -> list[tuple[int, int]]:
    """Unbroken ranges of delivery-ids, first and last included, in their order.

    Args:
        ids: serial numbers, each once.
        oldest: none of them lies before it.
    """
    found: list[tuple[int, int]] = []
    for number in sorted(ids, key=lambda one: serial.steps(one, oldest)):
        if found and number == serial.add(found[-1][1], 1):
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def settle_ranges(
    session: Session, deliveries: Iterable[IncomingDelivery], state: object
) -> list[tuple[int, int]]:
    """Settles deliveries of one session, whatever links they came over, in as few frames as can be.

    A disposition speaks for the whole session [2.7.6], so a range may span links; its frame is then
    about none of them alone.

    Args:
        session: which received them.
        deliveries: of it, unsettled.
        state: the outcome of all of them.

    Returns:
        The ranges that were told; none if the session can say nothing more.
    """
    chosen = {delivery.delivery_id: delivery for delivery in deliveries}
    if not chosen or not session.can_emit():
        return []
    told = ranges(chosen, next(iter(session.incoming)))
    for first, last in told:
        size = serial.diff(last, first) + 1
        inside = [chosen[serial.add(first, step)] for step in range(size)]
        links = {delivery.link for delivery in inside}
        for delivery in inside:
            delivery.link.settled_here(delivery, state)
        one = links.pop() if len(links) == 1 else None
        session.emit_disposition(one, Role.RECEIVER, first, last, settled=True, state=state)
    return told
