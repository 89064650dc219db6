"""What the rows of a quorum queue tell: replicas, their logs and disks, and each message's way.

A fold over one run's rows, for one queue. Nothing of Raft is worked out again: who leads, what is
committed and what is confirmed stand in rows. What a row leaves out is remembered from earlier
ones: a log's `fsync` says how many entries it made safe, and the rows before say which they were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from .schema import Row

WRITTEN, FSYNCED, REPLICATED = "written", "fsynced", "replicated"
COMMITTED, APPLIED, CONFIRMED = "committed", "applied", "confirmed"

FRONT = "front"  # where clients are: no node
LEADER, FOLLOWER, DOWN, UNTOLD = "leader", "follower", "down", "not told yet"
ROLES = (LEADER, FOLLOWER, "candidate", "pre-vote", DOWN, UNTOLD)

Value = TypeVar("Value")


class Timeline(Generic[Value]):
    """A value at every step, kept as its changes.

    Args:
        first: before the first change.
    """

    __slots__ = ("steps", "values")

    def __init__(self, first: Value) -> None:
        self.steps = [0]
        self.values: list[Value] = [first]

    def put(self, step: int, value: Value) -> None:
        """From this step on; steps come in order."""
        if value == self.values[-1]:
            return
        if step == self.steps[-1]:
            self.values[-1] = value
            return
        self.steps.append(step)
        self.values.append(value)

    @property
    def now(self) -> Value:
        """The latest value."""
        return self.values[-1]

    def at(self, step: int) -> Value:
        """The value at a step: step 0 is before the first row."""
        return self.values[max(0, bisect_right(self.steps, step) - 1)]


Nodes = tuple[str, ...]


class _Entry(NamedTuple):
    place: int
    term: int
    message: int  # 0: no message
    queue: str


@dataclass(slots=True)
class Message:
    """One message's way.

    Attributes:
        number: in the order of sending, from 1.
        logs: nodes whose log has it, in the order in which they took it.
        disks: nodes on whose disk it is, in order.
        done: steps at which it was first committed, applied and confirmed, as far as it was.
    """

    number: int
    logs: Timeline[Nodes] = field(default_factory=lambda: Timeline(()))
    disks: Timeline[Nodes] = field(default_factory=lambda: Timeline(()))
    done: dict[str, int] = field(default_factory=dict)

    def known(self, step: int) -> bool:
        """Whether some log has ever had it by then."""
        return len(self.logs.steps) > 1 and self.logs.steps[1] <= step


class Node:
    """One node with its replica and its write-ahead log.

    Args:
        before: the entries up to here were on its disk, committed and applied, from the beginning.

    Attributes:
        role: one of `ROLES`.
        term: that it was last heard to be in; 0 if not told.
        last, commit, applied: indexes of its log, as far as rows told.
        saved: index up to which its log is on its disk.
        waiting, syncing: entries in its write-ahead log that are not safe yet.
        fsync_us: a time that somebody gave its disk; None: the run's own.
    """

    def __init__(self, name: str, before: int) -> None:
        self.name = name
        self.last, self.commit, self.applied, self.saved = (Timeline(before) for _ in range(4))
        self.role: Timeline[str] = Timeline(UNTOLD)
        self.term, self.waiting, self.syncing = (Timeline(0) for _ in range(3))
        self.fsync_us: Timeline[int | None] = Timeline(None)
        self._log: dict[int, _Entry] = {}
        self._disk: dict[int, _Entry] = {}
        self._queued: deque[_Entry] = deque()
        self._batch: list[_Entry] = []


class Replicas:
    """A quorum queue's story: of the first queue that has replicas.

    Args:
        rows: of one run, in order of `seq`.
        nodes: that hold a replica, where that is known before a row tells of them.
        leader: that leads first, where that is known before a row tells of it.

    Attributes:
        queue: its name; empty if no row tells of one.
        before: the last entry before the first that a row tells of.
        nodes: by name.
        messages: by number; those that a log has taken.
        leader: who leads, empty if nobody or not told.
        cuts: ways that are cut, as pairs in alphabetical order.
        stall: why nothing is committed for want of a majority; empty if it is not so.
        slow: pending commands are more than the soft limit allows.
        confirmed: how many messages.
    """

    def __init__(self, rows: Iterable[Row], nodes: Iterable[str] = (), leader: str = "") -> None:
        self.rows: Sequence[Row] = list(rows)
        told = (row.queue for row in self.rows if "@" in row.vantage and row.queue is not None)
        self.queue = next(told, "")
        # Every replica has these on its disk, and knows them to be committed.
        taken = (int(row.extra["first"]) for row in self.rows if self._takes(row))
        self.before = min(taken, default=1) - 1
        self.nodes = {
            name: Node(name, self.before) for name in _node_names(self.rows, self.queue, nodes)
        }
        self.messages: dict[int, Message] = {}
        self.leader: Timeline[str] = Timeline("")
        self.cuts: Timeline[tuple[tuple[str, str], ...]] = Timeline(())
        self.stall: Timeline[str] = Timeline("")
        self.slow: Timeline[bool] = Timeline(False)
        self.confirmed: Timeline[int] = Timeline(0)
        self._step = 0
        if leader in self.nodes:
            self._lead(leader)
        else:
            self._begin()
        for row in self.rows:
            self._step += 1
            self._take(row)

    @property
    def majority(self) -> int:
        """So many replicas are one."""
        return len(self.nodes) // 2 + 1

    def reached(self, message: Message, state: str, step: int) -> tuple[bool, Nodes]:
        """Whether a message has reached a state at a step, and the nodes that speak for it.

        `written` is reached with the first log that has it, `replicated` when the logs of a
        majority have it, `fsynced` when the disks of a majority do; the others when the first row
        says so.
        """
        if state in (COMMITTED, APPLIED, CONFIRMED):
            return message.done.get(state, step + 1) <= step, ()
        logs = message.logs.at(step)
        if state == WRITTEN:
            return bool(logs), logs[:1]
        if state == REPLICATED:
            return len(logs) >= self.majority, logs[1:]
        disks = message.disks.at(step)
        return len(disks) >= self.majority, disks

    # -- rows -------------------------------------------------------------------------------

    def _takes(self, row: Row) -> bool:
        """Whether a replica of the queue takes entries into its log."""
        return row.event == "append" and row.queue == self.queue and "@" in row.vantage

    def _begin(self) -> None:
        """Who leads first is decided before the rows: who first sends entries, or is followed."""
        for row in self.rows:
            if row.event == "elect" and row.queue == self.queue:
                break
            if row.event == "replicate" and row.queue == self.queue:
                self._lead(_node_of(row))
                break
        else:
            if len(self.nodes) == 1:
                self._lead(next(iter(self.nodes)))

    def _lead(self, leader: str) -> None:
        for name, node in self.nodes.items():
            if name == leader:
                node.role.put(self._step, LEADER)
            elif node.role.now == UNTOLD:
                node.role.put(self._step, FOLLOWER)
        self.leader.put(self._step, leader)

    def _take(self, row: Row) -> None:
        place, _, _ = row.vantage.partition(":")
        if place == "wal" and _node_of(row) in self.nodes:
            self._wal(row, self.nodes[_node_of(row)])
        elif place == "node":
            self._fault(row)
        elif place == "queue" and "@" in row.vantage:
            if _node_of(row) in self.nodes:
                self._replica(row, self.nodes[_node_of(row)])
        elif place == "queue" and row.queue == self.queue:
            self._queue(row)

    def _replica(self, row: Row, node: Node) -> None:
        extra = row.extra
        if row.event == "append":
            self._append(row, node)
        elif row.queue != self.queue:
            return
        elif row.event in ("commit", "apply"):
            reached = int(extra["index"])
            known = node.commit if row.event == "commit" else node.applied
            state = COMMITTED if row.event == "commit" else APPLIED
            for index in range(known.now + 1, reached + 1):
                entry = node._log.get(index)
                if entry is not None and entry.message:
                    self.messages[entry.message].done.setdefault(state, self._step)
            known.put(self._step, reached)
            if node.name == self.leader.now:
                self.stall.put(self._step, "")
        elif row.event == "elect":
            node.term.put(self._step, int(extra["term"]))
            self._lead(node.name)
        elif row.event == "note" and row.kind in ROLES:
            node.term.put(self._step, int(extra["term"]))
            node.role.put(self._step, str(row.kind))
            if self.leader.now == node.name:
                self.leader.put(self._step, "")

    def _append(self, row: Row, node: Node) -> None:
        extra = row.extra
        first, last, term = (int(extra[name]) for name in ("first", "last", "term"))
        numbers = {
            index + more: message + more
            for index, message, count in extra.get("messages", ())
            for more in range(count)
        }
        mine = row.queue == self.queue
        entries = [
            _Entry(index, term, numbers.get(index, 0) if mine else 0, row.queue or "")
            for index in range(first, last + 1)
        ]
        node._queued.extend(entries)
        node.waiting.put(self._step, len(node._queued))
        if not mine:
            return
        self._cut_off(node, node._log, first)
        for entry in entries:
            node._log[entry.place] = entry
            if entry.message:
                message = self.messages.setdefault(entry.message, Message(entry.message))
                message.logs.put(self._step, _with(message.logs.now, node.name))
        node.last.put(self._step, last)
        node.term.put(self._step, term)

    def _cut_off(self, node: Node, log: dict[int, _Entry], first: int) -> None:
        """Entries from an index on make room for others."""
        gone: set[int] = set()
        while log and (last := next(reversed(log))) >= first:
            gone.add(log.pop(last).message)
        if not gone:
            return
        # A message that was sent again may stand in two places.
        for number in gone - {0} - {entry.message for entry in log.values()}:
            message = self.messages[number]
            found = message.logs if log is node._log else message.disks
            found.put(self._step, tuple(one for one in found.now if one != node.name))

    def _wal(self, row: Row, node: Node) -> None:
        count = int(row.extra["entries"])
        if row.event == "append":
            node._batch = [node._queued.popleft() for _ in range(min(count, len(node._queued)))]
        elif row.event == "fsync":
            self._safe(node, node._batch)
            node._batch = []
        node.waiting.put(self._step, len(node._queued))
        node.syncing.put(self._step, len(node._batch))

    def _safe(self, node: Node, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            if entry.queue != self.queue:
                continue
            self._cut_off(node, node._disk, entry.place)
            node._disk[entry.place] = entry
            node.saved.put(self._step, entry.place)
            if entry.message:
                disks = self.messages[entry.message].disks
                disks.put(self._step, _with(disks.now, node.name))

    def _fault(self, row: Row) -> None:
        name, extra = _node_of(row), row.extra
        node = self.nodes.get(name)
        if row.event in ("crash", "restart", "cut", "heal"):
            self.stall.put(self._step, "")
        if row.event in ("cut", "heal"):
            to = str(extra["to"])
            way = min(name, to), max(name, to)
            ways = {*self.cuts.now} - {way} | ({way} if row.event == "cut" else set())
            self.cuts.put(self._step, tuple(sorted(ways)))
        elif node is None:
            return
        elif row.event == "crash":
            saved = len(node._batch) + len(node._queued) - int(extra["lost"])
            self._safe(node, node._batch[:saved])
            self._power_off(node)
        elif row.event == "restart":
            node._log = dict(node._disk)
            for entry in node._log.values():
                if entry.message:
                    found = self.messages[entry.message].logs
                    found.put(self._step, _with(found.now, name))
            node.last.put(self._step, max(node._log, default=self.before))
            node.role.put(self._step, FOLLOWER)
        elif row.kind == "fsync-time":
            node.fsync_us.put(self._step, int(extra["fsync_us"]))

    def _power_off(self, node: Node) -> None:
        self._cut_off(node, node._log, 0)
        node._queued.clear()
        node._batch = []
        for line in (node.waiting, node.syncing, node.last, node.commit, node.applied):
            line.put(self._step, 0)
        node.role.put(self._step, DOWN)
        if self.leader.now == node.name:
            self.leader.put(self._step, "")

    def _queue(self, row: Row) -> None:
        if row.event == "confirm" and "message" in row.extra:
            number = int(row.extra["message"])
            message = self.messages.setdefault(number, Message(number))
            if CONFIRMED not in message.done:
                message.done[CONFIRMED] = self._step
                self.confirmed.put(self._step, self.confirmed.now + 1)
        elif row.event in ("block", "unblock") and row.kind == "soft-limit":
            self.slow.put(self._step, row.event == "block")
        elif row.kind == "no-majority":
            self.stall.put(self._step, str(row.extra["why"]))


def _node_of(row: Row) -> str:
    name = row.vantage.partition(":")[2]
    return name.rpartition("@")[2]


def _node_names(rows: Iterable[Row], queue: str, known: Iterable[str]) -> list[str]:
    """Every node that rows tell of; in a lesson's cluster each one holds a replica."""
    found = set(known)
    for row in rows:
        if row.vantage.startswith("node:"):
            found |= {_node_of(row), str(row.extra.get("to", FRONT))}
        elif row.queue == queue and row.vantage.startswith("queue:") and "@" in row.vantage:
            found.add(_node_of(row))
            if row.event == "replicate" and row.kind:
                found.add(row.kind)
    return sorted(found - {FRONT}, key=lambda name: (len(name), name))


def _with(nodes: Nodes, name: str) -> Nodes:
    return nodes if name in nodes else (*nodes, name)
