"""A stream that can be looked at before it is read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from typing import BinaryIO

__all__ = ["Ahead"]

_STEP = 1 << 20


class Ahead:
    """Octets of a file, gzip undone: read one after the other, or looked at in advance.

    Args:
        stream: a binary stream at its start.

    Attributes:
        problem: what is wrong with the compressed data; it ends there then.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.problem = ""
        self._more: Callable[[int], bytes] = stream.read
        self._held = b""
        self._at = 0
        if self.look(2) == b"\x1f\x8b":
            packed, self._held = self._held, b""
            unpacked = gzip.GzipFile(fileobj=_Behind(packed, stream))  # type: ignore[call-overload]
            # Little at a time, so that damage takes no more with it than that little.
            self._more = unpacked.read1

    def read(self, size: int) -> bytes:
        """The next octets; fewer than `size` only at the end."""
        if len(self._held) - self._at < size:
            self._fetch(size)
        data = self._held[self._at : self._at + size]
        self._at += len(data)
        return data

    def look(self, size: int) -> bytes:
        """The same octets, and they stay to be read."""
        if len(self._held) - self._at < size:
            self._fetch(size)
        return self._held[self._at : self._at + size]

    def _fetch(self, size: int) -> None:
        parts = [self._held[self._at :]]
        have = len(parts[0])
        self._at = 0
        while have < size:
            try:
                data = self._more(max(_STEP, size - have))
            except (EOFError, OSError, zlib.error) as error:
                self.problem = self.problem or str(error)
                break
            if not data:
                break
            parts.append(data)
            have += len(data)
        self._held = b"".join(parts)


class _Behind:
    """Octets that were read already, and behind them those of a stream."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._first = first
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if not self._first:
            return self._stream.read(size)
        if size < 0:
            data, self._first = self._first + self._stream.read(), b""
            return data
        data, self._first = self._first[:size], self._first[size:]
        return data
