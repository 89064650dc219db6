"""Runs of lesson 03 that several cells share: a drain, a stop, an estimate that goes stale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from workbench import serial
from workbench.presets import Preset
from workbench.scenarios.run import Run, run
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, Row
from workbench.trace.words import count

from . import measure
from .table import Table, Tabled


def drained(played: Run, link_credit: int) -> Run:
    """The run in which the receiver grants so much and sets drain at the same moment."""
    granted = played.act(played.start_seq, "grant", link_credit=link_credit)
    flow = measure.frames(granted.rows, "flow", from_peer=CLIENT, after=played.start_seq)[0]
    return granted.act(flow.seq, "drain")


def stopped(played: Run, at: int) -> Run:
    """The run in which the receiver stops the link after row `at`: link-credit 0 and echo."""
    return played.act(at, "stop")


def outdated(played: Run, publish: int) -> Run:
    """The run in which messages are published while the answer to an echo is on the wire.

    It ends where the receiver has read the answer: it has not been told of them.
    """
    asked = played.then("echo")
    answer = measure.frames(asked.rows, "flow", from_peer=BROKER, after=played.last)[0]
    return asked.act(answer.seq, "publish", count=publish)


def message_numbers(payloads: Iterable[bytes]) -> list[int]:
    """Which messages of a run these are: each body begins with `message` and its number."""
    found = (re.search(rb"message (\d+)", payload) for payload in payloads)
    return [int(match[1]) for match in found if match is not None]


def rabbit_drain(rows: Sequence[Row]) -> tuple[Row, list[Row]]:
    """The first drain of a capture that finds messages, but too few: request, and what follows.

    The rows that follow end before the client's next flow on that connection.

    Raises:
        ValueError: if there is none.
    """
    flows = measure.frames(rows, "flow", event=OBSERVED, from_peer=CLIENT)
    for request in flows:
        if not (request.frame or {}).get("drain"):
            continue
        here = [row for row in rows if row.connection == request.connection]
        later = [flow.seq for flow in flows if flow.seq > request.seq and flow in here]
        end = later[0] if later else rows[-1].seq + 1
        following = [row for row in here if request.seq < row.seq < end]
        sent = measure.messages(following, event=OBSERVED)
        if 0 < sent < int((request.frame or {}).get("link_credit") or 0):
            return request, following
    raise ValueError("no drain in this trace finds fewer messages than credit")


def rabbit_stop(rows: Sequence[Row]) -> Row:
    """The first flow of a capture that stops a link: link-credit 0 with echo, after messages.

    Raises:
        ValueError: if there is none.
    """
    for row in measure.observed_grants(rows):
        frame = row.frame or {}
        if frame["link_credit"] == 0 and frame.get("echo") and frame.get("delivery_count"):
            return row
    raise ValueError("no flow in this trace stops a link")


class DrainCases(Tabled):
    """The same drain on queues with different numbers of ready messages.

    Args:
        runs: by how many are ready; each opens in the stepper.
        link_credit: granted in each.
    """

    def __init__(self, runs: dict[int, Run], link_credit: int) -> None:
        self.runs = runs
        self.link_credit = link_credit

    @property
    def table(self) -> Table:
        """What came of each: a row a run."""
        return Table(
            name="Drain with different numbers of ready messages",
            head=(
                "ready",
                "transfers",
                "credit given back",
                "delivery-count",
                "link-credit at the end",
                "the sender's flow",
            ),
            lines=[self._line(ready, played) for ready, played in self.runs.items()],
        )

    def _line(self, ready: int, played: Run) -> tuple[str, ...]:
        start = played.start_seq
        sent = measure.messages(played.rows, after=start)
        answers = measure.frames(played.rows, "flow", from_peer=BROKER, after=start)
        before = measure.counter(played.rows, BROKER, "delivery_count", upto=start)
        after = measure.counter(played.rows, BROKER, "delivery_count")
        said = measure.numbers(answers[-1], "delivery_count", "link_credit") if answers else {}
        words = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in said.items())
        return (
            count(ready, "message"),
            str(sent),
            str(serial.diff(after, before) - sent),
            f"{before} → {after}",
            str(measure.credit(played.rows, BROKER)),
            self._ending(played, words),
        )

    @staticmethod
    def _ending(played: Run, words: str) -> str:
        if not played.rested:
            return f"cut: {played.note}"
        return words or "none: no credit was left to give back"


def drain_cases(
    ready: Sequence[int], *, link_credit: int, preset: Preset | str = "spec", **parameters: Any
) -> DrainCases:
    """Grant and drain on a queue with none, some, too many ready messages.

    Args:
        ready: how many messages are ready, one run each.
        link_credit: granted and drained.
        preset: every other number.
        parameters: further ones of the scenario.
    """
    runs = {
        messages: drained(run("credit", preset, {**parameters, "messages": messages}), link_credit)
        for messages in ready
    }
    return DrainCases(runs, link_credit)
