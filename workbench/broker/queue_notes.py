"""What a queue at work tells its observer."""

from __future__ import annotations

from workbench.queues import Modify, Purge, Queue, Reject, Release, Settle
from workbench.sim import Note, Tap, VirtualClock

WORDS: dict[type, str] = {
    Settle: "settle",
    Reject: "settle",
    Release: "requeue",
    Modify: "requeue",
    Purge: "settle",
}
"""Commands as events of a trace."""


class QueueNotes:
    """Rows of one queue: what happened, and what is in it and waits for it then.

    Attributes:
        queue: the state machine.
    """

    queue: Queue
    _clock: VirtualClock
    _tap: Tap
    _unseen: bool
    _series: dict[tuple[str, str | None], Note]

    @property
    def mailbox(self) -> int:
        """What waits for the process."""
        raise NotImplementedError

    def _log_count(self, event: str, count: int) -> None:
        """One row for as many messages as one command concerned."""
        if count:
            self._log(event, extra={"count": count} if count > 1 else None)

    def _log(
        self, event: str, *, kind: str | None = None, extra: dict[str, int | str] | None = None
    ) -> None:
        if self._unseen:
            return
        now_us, queue = self._clock.now_us, self.queue
        if extra is None:
            tell = self._series.get((event, kind)) or self._prepared(event, kind)
            tell(now_us, queue.ready, queue.unsettled, self.mailbox)
            return
        self._tap.internal(
            t_us=now_us,
            event=event,
            vantage=f"queue:{queue.name}",
            kind=kind,
            queue=queue.name,
            ledger={
                "queue_ready": queue.ready,
                "queue_unsettled": queue.unsettled,
                "mailbox": self.mailbox,
            },
            extra=extra,
        )

    def _prepared(self, event: str, kind: str | None) -> Note:
        """What makes rows of such events, of which nothing but counters is told."""
        tell = self._series[event, kind] = self._tap.series(
            event=event,
            vantage=f"queue:{self.queue.name}",
            kind=kind,
            queue=self.queue.name,
            ledger=("queue_ready", "queue_unsettled", "mailbox"),
        )
        return tell
