"""The table of the lessons, from which the index, the cards and the recall are made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One notebook.

    Attributes:
        number: two digits, in the order in which they are meant to be taken.
        name: of the file, after the number.
        title: what a learner does in it.
        idea: what they know afterwards.
        minutes: how long it takes with stepping and predicting.
        java: it uses Spark, which needs Java.
        after: numbers of the lessons to take before.
        able: what a learner can do afterwards, one line each.
    """

    number: str
    name: str
    title: str
    idea: str
    minutes: int
    java: bool = False
    after: tuple[str, ...] = ()
    able: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Name of the notebook."""
        return f"{self.number}_{self.name}.ipynb"


def _lesson(number: str, name: str, title: str, idea: str, minutes: int, **more: Any) -> Lesson:
    return Lesson(number=number, name=name, title=title, idea=idea, minutes=minutes, **more)


LESSONS: tuple[Lesson, ...] = (
    _lesson(
        "01",
        "credit",
        "Grant credit by hand",
        "nothing moves until the receiver speaks; credit is set, not added; when to top up",
        25,
        able=(
            "say why nothing is sent before the receiver speaks",
            "tell from both ledgers what each end knows and what it does not know yet",
            "choose when to grant again so that the sender never waits",
        ),
    ),
    _lesson(
        "02",
        "race",
        "Let a flow and a transfer cross",
        "why delivery-count exists; numbers that wrap around; all schedules at once",
        25,
        after=("01",),
        able=(
            "work out the sender's credit when a flow and a transfer cross",
            "show with the shortest bad schedule why set and add are wrong",
            "write the rule yourself and prove it on every schedule",
        ),
    ),
    _lesson(
        "03",
        "drain",
        "Drain, stop and hand over",
        "drain, time-out, echo, available; handing a queue to the next consumer",
        25,
        after=("01", "02"),
        able=(
            "fetch one message, with a time limit, without leaving credit behind",
            "stop a link and know when it is quiet",
            "hand a queue to the next consumer without changing the order",
        ),
    ),
    _lesson(
        "04",
        "windows",
        "Close a session's window",
        "windows count frames, not messages; a huge credit behind a tiny window",
        25,
        after=("01",),
        able=(
            "say which of two counters holds a message, and which flow frees it",
            "work out a window from both ids while frames are under way",
            "tell what an alarm stops, and what goes on",
        ),
    ),
    _lesson(
        "05",
        "publishers",
        "Slow one target among fast ones",
        "how a broker grants to publishers; one connection for both ways",
        25,
        after=(
            "01",
            "04",
        ),
        able=(
            "say when a broker grants to a publisher, and when it does not",
            "show that one slow target holds its own link and nobody else",
            "name the brake that binds a sender at any step",
        ),
    ),
    _lesson(
        "06",
        "amqp091",
        "Block a whole connection",
        "AMQP 0-9-1: prefetch, credit between processes, blocked readers",
        30,
        after=("01",),
    ),
    _lesson(
        "07",
        "quorum",
        "Wait for a majority",
        "quorum queues: log, disk, soft limit; three ways to confirm",
        30,
        after=(
            "01",
            "05",
        ),
        able=(
            "say what has to be on which disks before a message is confirmed",
            "tell what a crash, a cut and a slow disk do to messages that wait",
            "choose how many messages to keep in flight, and say what they gain and cost",
        ),
    ),
    _lesson(
        "08",
        "alarms",
        "Pull the emergency brake",
        "memory alarms, channel.flow, connection.blocked, paging",
        25,
        after=(
            "05",
            "06",
        ),
    ),
    _lesson(
        "09",
        "qpid",
        "Fill a Qpid broker",
        "AMQP 0-10: windows of completion and watermarks",
        25,
        after=(
            "01",
            "06",
        ),
    ),
    _lesson(
        "10",
        "million",
        "Find the stall in a large trace",
        "questions to large captures with Spark; the answer opens in the stepper",
        30,
        after=(
            "01",
            "03",
            "04",
        ),
        java=True,
        able=(
            "tell a sender that is held from one that has nothing to send",
            "get from a large trace to the frame where a stall begins, and name its brake",
            "say of any capture what it cannot tell, and why",
        ),
    ),
    _lesson(
        "11",
        "own_client",
        "Freeze the wire under your own client",
        "your client against a wire that waits for your hand; a museum of real bugs",
        30,
        after=(
            "01",
            "02",
        ),
        able=(
            "hold a real client's frames, let them go one by one, and stop at a counter",
            "say what a library does on the wire behind a call such as create_receiver",
            "tell what a trace of a foreign client knows from what it only reckons",
        ),
    ),
    _lesson(
        "12",
        "capstone",
        "Name the brake",
        "a trace nobody explains: find what holds it, tune it, prove it",
        30,
        after=(
            "04",
            "08",
            "10",
        ),
        java=True,
    ),
)


def lesson_numbered(number: str) -> Lesson:
    """The lesson of that number.

    Raises:
        ValueError: if there is none; the text lists the numbers.
    """
    for lesson in LESSONS:
        if lesson.number == number:
            return lesson
    listed = ", ".join(lesson.number for lesson in LESSONS)
    raise ValueError(f"no lesson {number!r}; there are: {listed}")


def ground_of(number: str) -> frozenset[str]:
    """Numbers of the lessons that a lesson builds on, directly or by way of another."""
    direct = lesson_numbered(number).after
    return frozenset(direct).union(*map(ground_of, direct))


def is_ready(lesson: Lesson, folder: Path) -> bool:
    """Whether its notebook is there."""
    return (folder / lesson.file).is_file()
