"""Credit of a subscription: messages and octets, each used up or given back.

The rules are those of Qpid C++ (`broker/Credit.h`, `Credit.cpp`), whose words these are. A flow
**adds**; 0xFFFFFFFF is no limit and stays it. In credit mode what is consumed is gone. In window
mode it is a window: what is consumed comes back when the receiver completes the transfer. Both
modes have balances of their own; a subscription begins in window mode, with nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .commands import UNLIMITED, AcceptMode, AcquireMode, MessageTransfer

__all__ = ["Credit", "CreditBalance", "Subscription", "subscription_name"]


def subscription_name(content: object, from_client: bool) -> str | None:
    """The subscription that a frame's content concerns, if the session has one of that name.

    A client's transfer names an exchange, and what else a broker sends a producer's destination.
    """
    if isinstance(content, MessageTransfer) == from_client:
        return None
    name: str | None = getattr(content, "destination", None)
    return name


@dataclass(slots=True)
class CreditBalance:
    """Messages, or octets.

    Attributes:
        allocated: granted and, in credit mode, not yet consumed.
        used: in window mode: consumed and not yet given back.
    """

    allocated: int = 0
    used: int = 0

    @property
    def unlimited(self) -> bool:
        """There is no limit."""
        return self.allocated == UNLIMITED

    @property
    def remaining(self) -> int:
        """What may be consumed; 0xFFFFFFFF: any number."""
        return UNLIMITED if self.unlimited else max(0, self.allocated - self.used)

    def grant(self, value: int) -> None:
        """Adds; a sum that would be too large stays just below unlimited."""
        if value == UNLIMITED or self.unlimited:
            self.allocated = UNLIMITED
        else:
            self.allocated = min(self.allocated + value, UNLIMITED - 1)

    def check(self, required: int) -> bool:
        """Whether so much may be consumed."""
        return self.unlimited or self.allocated - self.used >= required


@dataclass(slots=True)
class Credit:
    """What a subscription may be sent.

    Attributes:
        window: what is consumed is given back on completion.
    """

    window: bool = True
    _balances: dict[bool, tuple[CreditBalance, CreditBalance]] = field(
        default_factory=lambda: {mode: (CreditBalance(), CreditBalance()) for mode in (False, True)}
    )

    @property
    def messages(self) -> CreditBalance:
        """In the mode that is on."""
        return self._balances[self.window][0]

    @property
    def octets(self) -> CreditBalance:
        """In the mode that is on."""
        return self._balances[self.window][1]

    def check(self, octets: int) -> bool:
        """Whether a message of so many octets may be sent."""
        return self.messages.check(1) and self.holds(octets)

    def holds(self, octets: int) -> bool:
        """Whether it has so many octets, and one for a message that has none, which costs none."""
        return self.octets.check(max(octets, 1))

    def consume(self, octets: int) -> None:
        """A message is sent."""
        for balance, count in ((self.messages, 1), (self.octets, octets)):
            if balance.unlimited:
                continue
            if self.window:
                balance.used += count
            else:
                balance.allocated -= count

    def move(self, octets: int) -> None:
        """A message has been completed: in window mode its credit is there again."""
        if not self.window:
            return
        for balance, count in ((self.messages, 1), (self.octets, octets)):
            if not balance.unlimited:
                balance.used = max(0, balance.used - count)

    def cancel(self) -> None:
        """Nothing may be sent, of whatever was granted."""
        self.messages.allocated = self.octets.allocated = 0


@dataclass(slots=True, kw_only=True)
class Subscription:
    """Messages of a queue under a destination, as the end that sends them has it.

    Attributes:
        destination: its name on the session.
        queue: whose messages.
        accepts: the receiver accepts messages (accept-mode explicit).
        acquires: messages are the receiver's as they come (acquire-mode pre-acquired).
        exclusive: nobody else may subscribe to the queue.
        credit: what may be sent.
    """

    destination: str
    queue: str
    accepts: bool = True
    acquires: bool = True
    exclusive: bool = False
    credit: Credit = field(default_factory=Credit)

    @classmethod
    def of(
        cls, destination: str, queue: str, accept_mode: int | None, acquire_mode: int | None
    ) -> Subscription:
        """As message.subscribe asks; a mode that is absent is explicit, and pre-acquired."""
        return cls(
            destination=destination,
            queue=queue,
            accepts=accept_mode in (None, AcceptMode.EXPLICIT),
            acquires=acquire_mode in (None, AcquireMode.PRE_ACQUIRED),
        )

    def ledger(self) -> dict[str, int]:
        """Its counters: `credit_messages` and `credit_octets`; 0xFFFFFFFF is no limit."""
        return {
            "credit_messages": self.credit.messages.remaining,
            "credit_octets": self.credit.octets.remaining,
        }
