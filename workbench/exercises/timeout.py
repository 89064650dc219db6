"""Get one message or give up: which ending comes, by runs and by reckoning (figure 2.44)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.peers.getter import Ending
from workbench.presets import Preset
from workbench.scenarios.asking import GET_WITH_TIMEOUT, gets_of
from workbench.scenarios.run import Run, preset_of, run
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, CLIENT, RECEIVED

from . import measure
from .table import say


def named(ending: Ending) -> str:
    """What an ending is called."""
    return say(f"timeout.ending.{_key(ending)}")


def _key(ending: Ending) -> str:
    return ending.name.lower().replace("_", "-")


def ending_of(played: Run) -> str:
    """Which of the three endings the last get of a run came to, in words."""
    ending = gets_of(played)[-1].ending
    return say("timeout.waits") if ending is None else named(ending)


def explained(played: Run) -> str:
    """The ending in a sentence, with the run's own numbers."""
    get, start = gets_of(played)[-1], played.start_seq
    came = measure.frames(played.rows, "transfer", event=RECEIVED, from_peer=BROKER, after=start)
    answers = measure.frames(played.rows, "flow", event=RECEIVED, from_peer=BROKER, after=start)
    parts = []
    if get.drained_us is not None:
        parts.append(say("timeout.drained", ms=_ms(get.drained_us - get.asked_us)))
    if came:
        parts.append(say("timeout.came", ms=_ms(came[0].t_us - get.asked_us)))
    if answers:
        said = measure.numbers(answers[0], "delivery_count")
        ms = _ms(answers[0].t_us - get.asked_us)
        parts.append(say("timeout.flow", count=said["delivery_count"], ms=ms))
    facts = {"parts": ", ".join(parts), "credit": measure.credit(played.rows, CLIENT)}
    if get.ending is None:
        return say("timeout.still-waits", **facts)
    return say(f"timeout.told.{_key(get.ending)}", **facts)


def _ms(time_us: int) -> str:
    return f"{measure.milliseconds(time_us):g}"


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property needs a place
class TimedGet:
    """A get whose message is published at a known time: its runs, and beside them the reckoning.

    Attributes:
        publish_at_us: when the message is published, counted from the receiver's flow.
        preset: every other number.
        timeouts_us: of the runs that are drawn.
        latencies_us: of their wires, each way; the round trip is twice that.
        most_us: the longest time-out that is offered.
    """

    publish_at_us: int
    preset: Preset
    timeouts_us: Sequence[int]
    latencies_us: Sequence[int]
    most_us: int

    @property
    def names(self) -> tuple[str, ...]:
        """The endings, from the longest time-out to the shortest."""
        return tuple(map(named, Ending))

    def play(self, timeout_us: int, latency_us: int) -> Run:
        """One get with that time-out over that wire."""
        given = {
            "mode": GET_WITH_TIMEOUT,
            "timeout_us": timeout_us,
            "latency_us": latency_us,
            "publish_at_us": self.publish_at_us,
        }
        return run("asking", self.preset, given)

    def desk(self, *, timeout_us: int, latency_us: int) -> Any:
        """Sliders, the chart of all endings, and the run that is chosen on the stage.

        Args:
            timeout_us: chosen at first.
            latency_us: chosen at first, each way.
        """
        from workbench.views.timeout_view import TimeoutView

        return TimeoutView(self, timeout_us=timeout_us, latency_us=latency_us)

    def told(self, played: Run) -> str:
        """What came of a run, in one sentence."""
        return explained(played)

    @property
    def there_us(self) -> int:
        """When the message is in the queue, counted from the receiver's flow."""
        return self.publish_at_us + self.preset.queue_enqueue_us

    def limits(self, latency_us: int) -> tuple[int, int]:
        """From which time-out on the message comes at all, and from which it comes in time.

        At all: it is there when the drain arrives. In time: it has arrived when the time is over.
        """
        there = self.there_us
        in_time = max(there, latency_us) + self.preset.queue_deliver_us + latency_us
        return min(max(0, there - latency_us), self.most_us), min(in_time, self.most_us)

    @cached_property
    def outcomes(self) -> dict[tuple[int, int], str]:
        """The ending that each run came to, by (time-out, latency)."""
        return {
            (timeout, latency): ending_of(self.play(timeout, latency))
            for latency in self.latencies_us
            for timeout in self.timeouts_us
        }


@takes
def timed_get(
    *,
    publish_at_us: int,
    timeouts_us: Sequence[int] = (1000, 3000, 5000, 7000, 9000),
    latencies_us: Sequence[int] = (250, 500, 1000, 1500, 2000, 3000),
    most_us: int = 10_000,
    preset: Preset | str = "spec",
) -> TimedGet:
    """A get with a time-out, whose message is published at a known time.

    Args:
        publish_at_us: counted from the receiver's flow.
        timeouts_us: of the runs that are drawn.
        latencies_us: of their wires, each way.
        most_us: the longest time-out that is offered.
        preset: every other number.
    """
    return TimedGet(
        publish_at_us=publish_at_us,
        preset=preset_of(preset),
        timeouts_us=timeouts_us,
        latencies_us=latencies_us,
        most_us=most_us,
    )
