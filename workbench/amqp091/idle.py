"""Heartbeats: when to send one, and when to give the peer up [4.2.7].

There is no clock here: the owner says what time it is whenever something may have changed.
"""

from dataclasses import dataclass

__all__ = ["IdleTimer"]

US_PER_S = 1_000_000


@dataclass(slots=True)
class IdleTimer:
    """Watches both directions of a connection.

    Attributes:
        heartbeat_us: what both have agreed on; 0: no heartbeats. This end speaks after half as
            long, and gives the peer up after twice as long, as RabbitMQ does.
        deaf: this end does not read, so the peer's silence means nothing.
    """

    heartbeat_us: int = 0
    deaf: bool = False
    _frames_in: int = 0
    _frames_out: int = 0
    _heard_us: int | None = None
    _spoke_us: int | None = None

    @property
    def speak_within_us(self) -> int | None:
        """How long this end may be silent; None: for ever."""
        return self.heartbeat_us or None

    def see(self, frames_in: int, frames_out: int, now_us: int) -> None:
        """Notes the time if frames have come or gone since the last look."""
        if frames_in != self._frames_in or self._heard_us is None or self.deaf:
            self._frames_in, self._heard_us = frames_in, now_us
        if frames_out != self._frames_out or self._spoke_us is None:
            self._frames_out, self._spoke_us = frames_out, now_us

    def next_deadline(self) -> int | None:
        """When something is to be done, in microseconds, or None."""
        if not self.heartbeat_us or self._heard_us is None or self._spoke_us is None:
            return None
        speak = self._spoke_us + self.heartbeat_us // 2
        return speak if self.deaf else min(speak, self._heard_us + 2 * self.heartbeat_us)

    def must_speak(self, now_us: int) -> bool:
        """Whether a heartbeat is due."""
        return bool(
            self.heartbeat_us
            and self._spoke_us is not None
            and now_us >= self._spoke_us + self.heartbeat_us // 2
        )

    def silent_for_us(self, now_us: int) -> int | None:
        """How long the peer has been silent, if that is too long."""
        if not self.heartbeat_us or self._heard_us is None or self.deaf:
            return None
        silence = now_us - self._heard_us
        return silence if silence >= 2 * self.heartbeat_us else None
