"""A replica's log: commands in the order in which they will take effect.

Indexes begin at 1. Index 0 with term 0 is there in every log and holds nothing, so that the first
entry has something before it, as every other has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of a log; replicas share it.

    Attributes:
        index: its place, from 1.
        term: of the leader that wrote it.
        command: what it asks of the state machine; None for a leader's first entry, which asks
            nothing.
    """

    index: int
    term: int
    command: Any


class RaftLog:
    """Entries 1 to `last_index`, without gaps.

    Args:
        entries: to begin with, from index 1.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def last_index(self) -> int:
        """Index of the last entry; 0 if there is none."""
        return len(self._entries)

    @property
    def last_term(self) -> int:
        """Term of the last entry; 0 if there is none."""
        return self._entries[-1].term if self._entries else 0

    def term_at(self, index: int) -> int | None:
        """Term of the entry at an index, 0 at index 0, None beyond the end."""
        if index == 0:
            return 0
        if 0 < index <= len(self._entries):
            return self._entries[index - 1].term
        return None

    def __getitem__(self, index: int) -> Entry:
        if not 0 < index <= len(self._entries):
            raise IndexError(f"no entry {index}; the log has 1 to {len(self._entries)}")
        return self._entries[index - 1]

    def after(self, index: int, most: int) -> tuple[Entry, ...]:
        """The entries that follow an index, at most so many."""
        return tuple(self._entries[index : index + most])

    def entries(self) -> tuple[Entry, ...]:
        """Every entry."""
        return tuple(self._entries)

    def append(self, entries: Iterable[Entry]) -> None:
        """Put entries at the end; the first of them follows the last one."""
        self._entries.extend(entries)

    def cut_from(self, index: int) -> int:
        """Take the entry at an index away and all behind it; returns how many went."""
        gone = len(self._entries) - index + 1
        if gone > 0:
            del self._entries[index - 1 :]
        return max(0, gone)

    def overwrite(self, entries: Sequence[Entry]) -> None:
        """Put entries, one behind the other, at their places; what stood there or behind goes."""
        first = entries[0].index
        self.cut_from(first)
        assert first == len(self._entries) + 1, "a log has no gaps"
        self._entries.extend(entries)
