"""A receiver that leaves its link: gracefully, or outright.

Gracefully it stops the sender and asks for an echo, takes what still arrives, waits for the
answer, after which nothing more can come [2.6.10], settles everything and detaches. Outright it
just detaches: what it has not settled goes back to where it came from.
"""

from __future__ import annotations

from typing import Any

from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import DeliveryReceived, Event, FlowReceived

from .links import Consumer, Overview

GRACEFUL, OUTRIGHT = "graceful", "outright"
WAYS = (GRACEFUL, OUTRIGHT)


class LeavingConsumer(Consumer):
    """A consumer that can leave.

    Args:
        leave_after: messages after whose arrival it leaves by itself; None: it does not.
        way: in which it leaves then.

    Attributes:
        leaving: it has stopped the sender and waits for the answer.
        gone: it has detached.
    """

    def __init__(
        self,
        *where: str,
        leave_after: int | None = None,
        way: str = GRACEFUL,
        **arguments: Any,
    ) -> None:
        super().__init__(*where, **arguments)
        self.leaving = False
        self.gone = False
        self._leave_after = leave_after
        self._way = way

    def leave(self, way: str) -> None:
        """Leave the link.

        Raises:
            LocalProtocolError: it is leaving or gone already.
        """
        if self.leaving or self.gone:
            raise LocalProtocolError(
                f"{self.vantage} is {'gone' if self.gone else 'leaving'} already; legal now: let"
                " what is on the wire arrive"
            )
        if way == OUTRIGHT:
            self._detach()
            return
        self.leaving = True
        self.stop()

    def overview(self) -> Overview:
        """Flat picture of the consumer."""
        return {**super().overview(), "leaving": self.leaving, "gone": self.gone}

    # -- inside -------------------------------------------------------------------------------

    def handle(self, event: Event) -> None:
        """Goes on leaving, or begins to."""
        super().handle(event)
        if isinstance(event, FlowReceived) and self.leaving:
            # The sender has seen credit 0: nothing more will come, so all can be settled.
            self.leaving = False
            self.acknowledge()
            self._detach()
        elif (
            isinstance(event, DeliveryReceived)
            and self._leave_after is not None
            and self.received >= self._leave_after
            and not (self.leaving or self.gone)  # by a hand
        ):
            self._leave_after = None
            self.leave(self._way)

    def _detach(self) -> None:
        self.gone = True
        self.detach()
