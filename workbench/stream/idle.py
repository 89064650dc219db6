"""Silence on a connection: when to send a heartbeat, and when to give the peer up.

There is no clock here. The owner says what time it is whenever something may have changed, and is
told when to come back. What follows from what the peers told each other is the protocol's to say
[AMQP 1.0, 2.4.5; AMQP 0-9-1, 4.2.7].
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["IdleTimer"]


@dataclass(slots=True)
class IdleTimer:
    """Watches both directions of a connection.

    Attributes:
        give_up_after_us: the longest silence of the peer; None: any.
        speak_within_us: the longest silence of this end; None: any.
        deaf: this end does not read, so the peer's silence means nothing.
    """

    give_up_after_us: int | None = None
    speak_within_us: int | None = None
    deaf: bool = False
    _frames_in: int = 0
    _frames_out: int = 0
    _heard_us: int | None = None
    _spoke_us: int | None = None

    def see(self, frames_in: int, frames_out: int, now_us: int) -> None:
        """Notes the time if frames have come or gone since the last look."""
        if frames_in != self._frames_in or self._heard_us is None or self.deaf:
            self._frames_in, self._heard_us = frames_in, now_us
        if frames_out != self._frames_out or self._spoke_us is None:
            self._frames_out, self._spoke_us = frames_out, now_us

    def next_deadline(self) -> int | None:
        """When something is to be done, in microseconds, or None."""
        deadlines = []
        if self.give_up_after_us is not None and self._heard_us is not None and not self.deaf:
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
        if self.give_up_after_us is None or self._heard_us is None or self.deaf:
            return None
        silence = now_us - self._heard_us
        return silence if silence >= self.give_up_after_us else None
