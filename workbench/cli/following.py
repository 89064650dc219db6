"""`workbench analyze FOLDER stalls --follow`: what goes on now at a recorder that is running."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Any

from .console import DONE, CommandError, one_line, say

if TYPE_CHECKING:
    from workbench.analysis.live import Follower

QUESTIONS = {"stalls": "stalls", "throughput": "rates"}
"""Questions that can be followed, and what the stream calls them."""
SHOWN = 20
POLL_S = 0.3


def follow_command(arguments: argparse.Namespace) -> int:
    """Print after each batch what goes on, until Ctrl-C or a stream that has failed."""
    from workbench.analysis.errors import AnalysisError
    from workbench.following import follow

    name = QUESTIONS.get(arguments.question)
    if name is None:
        raise CommandError(
            f"--follow answers {' and '.join(QUESTIONS)}, not {arguments.question}", 2
        )
    screen = _Screen(arguments, name)
    try:
        follower = follow(
            arguments.trace, checkpoint=arguments.checkpoint, told=screen.show, say=say
        )
    except AnalysisError as error:
        raise CommandError(str(error)) from None
    stopped: list[int] = []
    # PySpark's own handler breaks into whatever it is just doing, and tells of it at length.
    before = signal.signal(signal.SIGINT, lambda number, _frame: stopped.append(number))
    again = "begins anew; --checkpoint DIR makes it go on"
    if arguments.checkpoint is not None:
        again = "goes on from there"
    say(f"following {arguments.trace}; Ctrl-C ends it, and the same command {again}")
    try:
        while not stopped and not follower.wait(POLL_S):
            pass
    except AnalysisError as error:
        raise CommandError(str(error)) from None
    finally:
        follower.stop()
        signal.signal(signal.SIGINT, before)
    say(f"{follower.rows:,} rows so far")
    return DONE


class _Screen:
    """Says what is new: a table of what goes on, when it differs from the last one."""

    def __init__(self, arguments: argparse.Namespace, question: str) -> None:
        self.arguments, self.question = arguments, question
        self._last: list[str] | None = None

    def show(self, follower: Follower) -> None:
        """After a batch, in Spark's thread."""
        now = follower.now()[self.question]
        if self.question == "rates":
            now = [row for row in now if row["frames"]]
        else:
            now = [row for row in now if row["release_frame_id"] is None]
        now.sort(key=lambda row: str(tuple(row.values())))
        if self.arguments.format == "json":
            lines = [json.dumps(row, ensure_ascii=False) for row in now]
        else:
            told = _stall if self.question == "stalls" else _rate
            lines = [told(row, self.arguments.trace) for row in now[:SHOWN]]
            if len(now) > SHOWN:
                lines.append(f"... and {len(now) - SHOWN:,} more")
        if lines == self._last:
            return
        self._last = lines
        if self.arguments.format == "json":
            print(f"[{', '.join(lines)}]", flush=True)
            return
        print(f"-- {follower.rows:,} rows; {self.question} now: {len(now)}")
        for line in lines:
            print(line)
        sys.stdout.flush()


def _name(row: dict[str, Any]) -> str:
    return one_line(
        f"{row['connection']}/{row['session']} {row['link']} of the {row['link_sender']}"
    )


def _stall(row: dict[str, Any], folder: str) -> str:
    words = ["workbench", "show", folder, "--run", row["run"], "--at", str(row["seq"])]
    lasted = (row["end_us"] - row["start_us"]) / 1e6
    return (
        f"{_name(row)}: {row['brake']} for {lasted:.1f} s, {row['messages_waiting']:,} wait"
        f" ({row['evidence']})  {shlex.join(words)}"
    )


def _rate(row: dict[str, Any], _folder: str) -> str:
    return (
        f"{_name(row)}: {row['rate']:,.0f} messages/s, {row['frames']:,} frames,"
        f" {row['body_bytes']:,} octets"
    )
