"""Silence on a connection: when to send a heartbeat, and when to give up [2.4.5].

There is no clock here. The owner says what time it is whenever something may have changed, and is
told when to come back.
"""

from dataclasses import dataclass

__all__ = ["IdleTimer"]

US_PER_MS = 1000


@dataclass(slots=True)
class IdleTimer:
    """Watches both directions of a connection.

    Attributes:
        give_up_after_us: the longest silence of the peer; None: any. Twice the idle-time-out told
            in this end's open: the specification wants the told value to be half the threshold.
        speak_within_us: the longest silence of this end; None: any. Half of what the peer told,
            so that the heartbeat arrives in time.
    """

    give_up_after_us: int | None = None
    speak_within_us: int | None = None
    _frames_in: int = 0
    _frames_out: int = 0
    _heard_us: int | None = None
    _spoke_us: int | None = None

    def expect(self, idle_time_out_ms: int | None) -> None:
        """Takes this end's own idle-time-out, in milliseconds; 0 and None are none."""
        self.give_up_after_us = 2 * idle_time_out_ms * US_PER_MS if idle_time_out_ms else None

    def promise(self, idle_time_out_ms: int | None) -> None:
        """Takes the idle-time-out of the peer's open, in milliseconds; 0 and None are none."""
        self.speak_within_us = idle_time_out_ms * US_PER_MS // 2 if idle_time_out_ms else None

    def see(self, frames_in: int, frames_out: int, now_us: int) -> None:
        """Notes the time if frames have come or gone since the last look."""
        if frames_in != self._frames_in or self._heard_us is None:
            self._frames_in, self._heard_us = frames_in, now_us
        if frames_out != self._frames_out or self._spoke_us is None:
            self._frames_out, self._spoke_us = frames_out, now_us

    def next_deadline(self) -> int | None:
        """When something is to be done, in microseconds, or None."""
        deadlines = []
        if self.give_up_after_us is not None and self._heard_us is not None:
            deadlines.append(self._heard_us + self.give_up_after_us)
        if self.speak_within_us is not None and self._spoke_us is not None:
            deadlines.append(self._spoke_us + self.speak_within_us)
        return min(deadlines, default=None)

    def must_speak(self, now_us: int) -> bool:
        """Whether a heartbeat is due."""
        return (
            self.speak_within_us is not None
            and self._spoke_us is not None
            and now_us >= self._spoke_us + self.speak_within_us
        )

    def silent_for_us(self, now_us: int) -> int | None:
        """How long the peer has been silent, if that is too long."""
        if self.give_up_after_us is None or self._heard_us is None:
            return None
        silence = now_us - self._heard_us
        return silence if silence >= self.give_up_after_us else None
