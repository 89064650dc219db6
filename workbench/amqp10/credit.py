"""Credit policies: when a receiver grants, and how much.

The mechanism (what credit means, how a flow carries it) is in `flow` and `receiver`; a policy only
chooses. It gives *absolute* credits, as a flow does [AMQP 1.0, 2.6.7]: a grant of 50 on a link with
20 left makes 50, not 70.
"""

from dataclasses import dataclass
from typing import Protocol

from workbench.amqp10.errors import LocalProtocolError

__all__ = ["BatchThenWait", "CreditPolicy", "Manual", "OneAtATime", "TopUp", "TopUpAtHalf"]


class CreditPolicy(Protocol):
    """When to grant credit to the sender."""

    def initial(self) -> int | None:
        """The link-credit to grant once the link is attached, or None."""

    def after_delivery(self, link_credit: int, processed: int) -> int | None:
        """Asked whenever the receiver has finished with a delivery.

        Args:
            link_credit: what is left, in deliveries.
            processed: deliveries finished with since the last grant.

        Returns:
            The link-credit to grant, or None to say nothing.
        """


@dataclass(frozen=True, slots=True)
class Manual:
    """Never grants: somebody else does, by hand."""

    def initial(self) -> int | None:
        """None."""
        return None

    def after_delivery(self, link_credit: int, processed: int) -> int | None:
        """None."""
        return None


@dataclass(frozen=True, slots=True)
class OneAtATime:
    """Grants 1, and 1 again when that message is done: the synchronous get [2.6.8].

    Every message costs a round trip.
    """

    def initial(self) -> int | None:
        """One."""
        return 1

    def after_delivery(self, link_credit: int, processed: int) -> int | None:
        """One more, once there is none."""
        return 1 if link_credit == 0 else None


@dataclass(frozen=True, slots=True)
class BatchThenWait:
    """Grants n, waits until all n are done, then grants n again.

    The sender stands still for a round trip after every batch.

    Args:
        n: the batch, in deliveries.
    """

    n: int

    def __post_init__(self) -> None:
        _check_credit(self.n)

    def initial(self) -> int | None:
        """The first batch."""
        return self.n

    def after_delivery(self, link_credit: int, processed: int) -> int | None:
        """The next batch, once this one is used up and done."""
        return self.n if link_credit == 0 and processed >= self.n else None


@dataclass(frozen=True, slots=True)
class TopUp:
    """Grants n, and n again as soon as no more than `at` is left.

    The RabbitMQ team's article "Ten Benefits of AMQP 1.0 Flow Control" shows a consumer with 200
    and 100: it grants 200, and 200 again when less than 100 is left, so at 99, so that the sender
    never runs dry while the flow is under way.

    Args:
        n: the credit granted, in deliveries.
        at: grant again at this or less, below `n`.
    """

    n: int
    at: int

    def __post_init__(self) -> None:
        _check_credit(self.n)
        if not 0 <= self.at < self.n:
            raise LocalProtocolError(
                f"a top-up at {self.at} of {self.n} would grant at once or never; "
                f"legal is 0 to {self.n - 1}"
            )

    def initial(self) -> int | None:
        """The first grant."""
        return self.n

    def after_delivery(self, link_credit: int, processed: int) -> int | None:
        """Up to `n`, once no more than `at` is left."""
        return self.n if link_credit <= self.at else None


def TopUpAtHalf(n: int) -> TopUp:  # noqa: N802 (it stands beside the policies)
    """Grants n, and n again once no more than half of it is left.

    RabbitMQ 4 does so towards publishers: 170, and again at 85 or less
    (`rabbit_amqp_session.erl`: `LinkCredit =< MaxLinkCredit div 2`).

    Args:
        n: the credit granted, in deliveries.
    """
    return TopUp(n, n // 2)


def _check_credit(n: int) -> None:
    if not 1 <= n <= 4294967295:
        raise LocalProtocolError(f"link-credit {n} is not legal here: 1 to 4294967295")
