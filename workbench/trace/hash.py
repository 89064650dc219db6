"""The trace hash: two runs that went alike have the same one.

SHA-256 over the canonical JSON of the rows without `raw`, `run` and `clause`: octets follow from
the fields, a name is not a fact about the run, and a better reference to the specification must not
change it. A column that is null (or an empty list) is left out, so a column added later leaves the
hashes of older traces as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from .schema import COLUMN_NAMES, STRUCT_COLUMNS, Row

LEFT_OUT = ("raw", "run", "clause")
_COLUMNS = tuple(name for name in COLUMN_NAMES if name not in LEFT_OUT)


def canonical_row(row: Row) -> str:
    """One row as canonical JSON: sorted names, no blanks, octets as hex, nothing that is null."""
    found: dict[str, Any] = {}
    for name in _COLUMNS:
        value = getattr(row, name)
        if value is None or value == ():
            continue
        if name in STRUCT_COLUMNS:
            value = {key: inner for key, inner in value.items() if inner is not None}
        found[name] = value
    return json.dumps(
        found, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_octets
    )


def trace_hash(rows: Iterable[Row]) -> str:
    """SHA-256 of a trace, as 64 hex digits."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(canonical_row(row).encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()


def _octets(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"a trace holds no {type(value).__name__}")
