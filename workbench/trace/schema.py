"""The trace: one row per event. The contract that everybody shares.

Three rules for this file. Every column is declared once, in `COLUMNS`, with type, unit,
nullability and meaning: the Arrow schema, the Spark schema and `data/README.md` are made from it.
A column or field that may be null can be added as it is, for readers take what is missing as null
and pass over what they do not know; any other change needs a new `SCHEMA_VERSION`. Nothing heavy is
imported: Arrow comes in when a function needs it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from .fields import (
    ACTOR_FIELDS,
    COMMAND_FIELDS,
    CONFIRM_FIELDS,
    DESTINATION_FIELDS,
    DETAIL_FIELDS,
    EXTRA_JSON,
    FRAME_010_FIELDS,
    FRAME_091_FIELDS,
    FRAME_FIELDS,
    FRAME_PROTOCOLS,
    HOP_FIELDS,
    LINK_FIELDS,
    PREFETCH_FIELDS,
    SESSION_FIELDS,
    SHARED_FIELDS,
    Field,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SCHEMA_VERSION = "1.1"
"""Of a later one, such as `1.2`, the first number alone decides whether it can be read."""
VERSION_KEY = "workbench.trace.version"
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"

# Events of frames: who logged it is the vantage.
SENT, RECEIVED, OBSERVED = "sent", "received", "observed"
FRAME_EVENTS: tuple[str, ...] = (SENT, RECEIVED, OBSERVED)
_RANK = {OBSERVED: 0, SENT: 1, RECEIVED: 2}

BLOCKED, UNBLOCKED = "connection.blocked", "connection.unblocked"
"""Kinds of frames by which a broker tells a client of AMQP 0-9-1 of an alarm, and of its end."""

# Every other event, with what it means.
INTERNAL_EVENTS: dict[str, str] = {
    "enqueue": "a queue took a message",
    "deliver": "a queue handed a message to a consumer's link",
    "settle": "a message left the queue for good",
    "requeue": "a message went back into the queue",
    "drop": "a message was thrown away",
    "activate": "a queue made a consumer its single active one",
    "deactivate": "a queue's single active consumer made way for another one",
    "confirm": "a queue took responsibility for a message",
    "append": "an entry was written to a log, not yet safe",
    "fsync": "a log was forced to disk",
    "replicate": "a leader sent entries to another replica",
    "elect": "a replica became the leader of its group",
    "cut": "a way between two nodes was cut",
    "heal": "a way between two nodes was mended",
    "commit": "a majority has an entry",
    "apply": "a committed command took effect",
    "grant": "an actor gave credit to the one that sends to it",
    "block": "an actor ran out of credit and stopped",
    "unblock": "an actor went on",
    "alarm-set": "a resource alarm began",
    "alarm-clear": "a resource alarm ended",
    "publish": "an application handed a message to its sender",
    "process": "an application finished with a message",
    "drained": "a sender gave its credit back",
    "timeout": "a timer ran out",
    "crash": "a process or node died",
    "restart": "a process or node came back",
    "connect": "a connection was made",
    "disconnect": "a connection was lost",
    "gap": "octets are missing here: the capture lost them, has only the other direction, or begins"
    " or ends in a frame",
    "error": "something went wrong that no frame tells",
    "hold": "a frame, or a direction of the wire, was held",
    "release": "a frame, or a direction of the wire, was let go",
    "latency": "the latency of a wire was changed",
    "action": "a person acted",
    "note": "a remark",
}
EVENTS: tuple[str, ...] = (*FRAME_EVENTS, *INTERNAL_EVENTS)
LOSSES = ("gap", "error")
"""Events of the rows that stand where octets gave no frame: what they said is not known."""

AMQP_1_0, AMQP_0_9_1, AMQP_0_10 = FRAME_PROTOCOLS
INTERNAL = "internal"

OWN, SHADOW = "own", "shadow"

CLIENT, BROKER = "client", "broker"
WIRE_VANTAGE = "wire"

LINK, SESSION, ACTOR = "link", "session", "actor"
PREFETCH, SHARED, CONFIRM = "prefetch", "shared", "confirm"
DESTINATION, COMMANDS, HOP = "destination", "commands", "hop"
_GROUPS: dict[str, tuple[Field, ...]] = {
    LINK: LINK_FIELDS,
    SESSION: SESSION_FIELDS,
    ACTOR: ACTOR_FIELDS,
    PREFETCH: PREFETCH_FIELDS,
    SHARED: SHARED_FIELDS,
    DESTINATION: DESTINATION_FIELDS,
    COMMANDS: COMMAND_FIELDS,
    HOP: HOP_FIELDS,
    CONFIRM: CONFIRM_FIELDS,
}
LEDGER_FIELDS: tuple[Field, ...] = tuple(one for fields in _GROUPS.values() for one in fields)
LEDGER_GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(item.name for item in fields) for group, fields in _GROUPS.items()
}
GROUP_OF: dict[str, str] = {name: group for group, names in LEDGER_GROUPS.items() for name in names}


COLUMNS: tuple[Field, ...] = (
    Field("run", "string", "which run, branch or capture", nullable=False),
    Field("seq", "int64", "total order within the run, from 0, no gaps", nullable=False),
    Field("t_us", "int64", "time since the run's start; never decreases", "us", nullable=False),
    Field(
        "vantage",
        "string",
        "who logged it: `client:<name>`, `broker`, `wire` (a capture), or an actor inside the"
        " broker (`queue:q1`, `wal:n1`, `session:c1/1`, `reader:c1`)",
        nullable=False,
    ),
    Field(
        "t_raw_us",
        "int64",
        "captures: the packet clock as it was; a gate: its time in the run; `t_us` is the running"
        " maximum",
        "us",
    ),
    Field(
        "event", "string", "`sent`, `received`, `observed`, or an internal event", nullable=False
    ),
    Field(
        "frame_id",
        "int64",
        "the same in the `sent` and the `received` row of one frame; in flight while only the first"
        " exists; set on frame rows",
    ),
    Field("from_peer", "string", "who sent this frame: `client` or `broker`; set on frame rows"),
    Field(
        "protocol", "string", "`amqp-1.0`, `amqp-0-9-1`, `amqp-0-10` or `internal`", nullable=False
    ),
    Field("connection", "string", "`c1`, `c2`, ... in order of opening; set on frame rows"),
    Field(
        "session",
        "int32",
        "ordinal of the session or channel on its connection (the number on the wire is in the"
        " frame)",
    ),
    Field(
        "link",
        "string",
        "the link's name; where its attach was not captured its handle (`handle 0`), once it is"
        " seen who sends; AMQP 0-10: the destination's",
    ),
    Field("link_sender", "string", "which peer sends messages over it: `client` or `broker`"),
    Field(
        "attach_no",
        "int32",
        "1, 2, ... each time that link is attached again; null where its attach was not captured",
    ),
    Field("consumer", "string", "AMQP 0-9-1: the consumer's tag"),
    Field("queue", "string", "the queue concerned"),
    Field(
        "kind",
        "string",
        "performative or method (`flow`, `basic.publish`), `protocol-header`, `heartbeat`, or"
        " `undecodable` for a frame whose body is none; on internal rows the actor's word",
    ),
    Field(
        "frame",
        "struct",
        "AMQP 1.0: the fields as on the wire, null when absent (no default is filled in)",
        fields=FRAME_FIELDS,
    ),
    Field(
        "frame_091",
        "struct",
        "AMQP 0-9-1: the method's fields as on the wire",
        fields=FRAME_091_FIELDS,
    ),
    Field(
        "frame_010",
        "struct",
        "AMQP 0-10: the command's fields as on the wire",
        fields=FRAME_010_FIELDS,
    ),
    Field(
        "details",
        "struct",
        "internal events: what the row says beside its columns; null on rows of frames",
        fields=DETAIL_FIELDS,
    ),
    Field(
        "ledger",
        "struct",
        "counters of the end that logged the row, right after the event and before any reply it"
        " causes; null means not in this row's scope",
        fields=LEDGER_FIELDS,
    ),
    Field(
        "ledger_source",
        "string",
        "`own`, `shadow` (computed by an endpoint of ours fed the same frames) or `observed` (the"
        " link sender's entitlement at the capture point, floored at 0)",
    ),
    Field("unknown", "list<string>", "ledger fields in scope whose value cannot be known"),
    Field("brake", "string", "on the sender's rows: what holds the link's sender first"),
    Field("brakes", "list<string>", "on the sender's rows: everything that holds it"),
    Field("body_bytes", "int64", "payload of this frame", "octets"),
    Field("frame_bytes", "int64", "size of the whole frame", "octets"),
    Field("raw", "binary", "the frame's octets; null in large traces by choice"),
    Field("clause", "string", "the rule that explains the event: `2.6.7`, `rmq4.3:regrant`"),
)

FRAME_COLUMNS: dict[str, str] = {
    AMQP_1_0: "frame", AMQP_0_9_1: "frame_091", AMQP_0_10: "frame_010",
}  # fmt: skip
"""The column that has a frame's fields, by protocol."""

LedgerValue = int | bool


@dataclass(slots=True)
class Row:
    """One event of a trace; one attribute per column (see `COLUMNS` for meaning and units).

    Attributes are given by name; only where rows are made of a table's columns they are given in
    order, which is several times quicker.

    `frame`, `frame_091`, `frame_010`, `details` and `ledger` hold only the fields that are present.

    `raw` of a row that a tap made is worked out from `item` each time it is asked for, so a run of
    200,000 rows carries no octets until somebody looks at some.

    Attributes:
        item: the frame as a value, if the row was made in this process; not a column.
    """

    run: str
    seq: int
    t_us: int
    vantage: str
    event: str
    protocol: str
    t_raw_us: int | None = None
    frame_id: int | None = None
    from_peer: str | None = None
    connection: str | None = None
    session: int | None = None
    link: str | None = None
    link_sender: str | None = None
    attach_no: int | None = None
    consumer: str | None = None
    queue: str | None = None
    kind: str | None = None
    frame: dict[str, Any] | None = None
    frame_091: dict[str, Any] | None = None
    frame_010: dict[str, Any] | None = None
    details: dict[str, Any] | None = None
    ledger: dict[str, LedgerValue] | None = None
    ledger_source: str | None = None
    unknown: tuple[str, ...] = ()
    brake: str | None = None
    brakes: tuple[str, ...] = ()
    body_bytes: int | None = None
    frame_bytes: int | None = None
    raw: bytes | None = None
    clause: str | None = None
    item: Any = field(default=None, compare=False, repr=False)

    @property
    def is_frame(self) -> bool:
        """True for `sent`, `received` and `observed`."""
        return self.event in FRAME_EVENTS

    @property
    def timed(self) -> bool:
        """Whether `t_us` is a time; of a frame in the log of a program it tells the order alone."""
        return self.event != OBSERVED or self.t_raw_us is not None

    @property
    def fields(self) -> Mapping[str, Any]:
        """A frame's fields as on the wire, whatever its protocol; empty for internal rows."""
        return self.frame or self.frame_091 or self.frame_010 or {}

    @property
    def is_death(self) -> bool:
        """Whether a process has died by itself; what a hand has crashed may be restarted."""
        return self.event == "crash" and self.kind is not None

    @property
    def goes_on(self) -> bool:
        """Whether the message of a transfer goes on in the link's next one [AMQP 1.0, 2.6.14]."""
        frame = self.frame or {}
        return bool(frame.get("more")) and not frame.get("aborted")

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a frame's `extra_json` tells, as a dict; of an internal row all its details.

        Empty if there is nothing, or if the text is no JSON object. A trace of version 1 has an
        internal row's details in the `extra_json` of `frame`.
        """
        told = self.details or self.fields
        found = _object(told.get(EXTRA_JSON))
        if not self.details:
            return found
        return {name: value for name, value in told.items() if name != EXTRA_JSON} | found


def other_peer(peer: str) -> str:
    """The peer at the opposite end."""
    return BROKER if peer == CLIENT else CLIENT


def peer_of(vantage: str) -> str | None:
    """Which peer's end a vantage is; None for a capture, or an actor inside the broker."""
    if vantage == BROKER:
        return BROKER
    return CLIENT if vantage.startswith("client:") else None


def logged_by(row: Row) -> str:
    """The peer that logged the row of a frame, which is not `observed`."""
    author = str(row.from_peer)
    return author if row.event == SENT else other_peer(author)


def once(frames: Iterable[Row]) -> list[Row]:
    """One row for each frame: the observed one, else the sent one, else the received one."""
    best: dict[tuple[str, int | None], Row] = {}
    for row in frames:
        known = best.get((row.run, row.frame_id))
        if known is None or _RANK[row.event] < _RANK[known.event]:
            best[row.run, row.frame_id] = row
    return sorted(best.values(), key=lambda row: (row.run, row.seq))


def _object(text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


COLUMN_NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
STRUCT_COLUMNS: tuple[str, ...] = tuple(column.name for column in COLUMNS if column.fields)


@cache
def arrow_schema() -> Any:
    """The Arrow schema, with doc and unit in each field's metadata and the version in its own."""
    import pyarrow as pa

    words = {
        "string": pa.string(),
        "int64": pa.int64(),
        "int32": pa.int32(),
        "bool": pa.bool_(),
        "binary": pa.binary(),
        "list<string>": pa.list_(pa.string()),
    }

    def arrow_field(column: Field) -> Any:
        kind = (
            pa.struct([arrow_field(inner) for inner in column.fields])
            if column.fields
            else words[column.type]
        )
        metadata = {"doc": column.doc} | ({"unit": column.unit} if column.unit else {})
        return pa.field(column.name, kind, nullable=column.nullable, metadata=metadata)

    return pa.schema(
        [arrow_field(column) for column in COLUMNS], metadata={VERSION_KEY: SCHEMA_VERSION}
    )


def misfit(found: Any) -> str:
    """Why rows with this Arrow schema cannot be read as a trace, in words; empty if they can.

    What may be null may be missing, and there may be more; names of list items, nullability and
    metadata are left to the writer.
    """
    version = version_in(found.metadata)
    if version is not None and _major(version) != _major(SCHEMA_VERSION):
        return f"a trace of schema version {version}, and this is version {SCHEMA_VERSION}"
    missing, other = [], []
    for column, wanted in zip(COLUMNS, arrow_schema(), strict=True):
        if column.name in found.names:
            other += _other_types(column.name, found.field(column.name).type, wanted.type)
        elif not column.nullable:
            missing.append(column.name)
    parts = (("missing columns", missing), ("another type in", other))
    words = "; ".join(f"{word} {few(names)}" for word, names in parts if names)
    return words and f"not a trace: {words}"


def _major(version: str) -> str:
    return version.split(".")[0]


def _other_types(name: str, found: Any, wanted: Any) -> list[str]:
    """Which of a column and its fields, as far as they are there, have another type."""
    import pyarrow as pa

    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        theirs = {field.name: field.type for field in found}
        return [
            one
            for field in wanted
            if field.name in theirs
            for one in _other_types(f"{name}.{field.name}", theirs[field.name], field.type)
        ]
    if pa.types.is_list(wanted) and pa.types.is_list(found):
        return _other_types(name, found.value_type, wanted.value_type)
    kind = str(found) if len(str(found)) < 40 else f"{str(found)[:40]}..."
    return [] if found == wanted else [f"{name} ({kind})"]


def few(names: Sequence[str], most: int = 6) -> str:
    """The first of many names, and how many more there are."""
    shown = ", ".join(name if name.isprintable() else ascii(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def fitted(rows: Any, names: Sequence[str] = ()) -> Any:
    """A record batch of a trace with just these columns: null what it lacks, the rest left out.

    Args:
        rows: a batch whose schema is no `misfit`.
        names: of columns, or of a struct's fields (`frame.more`); all columns if empty.
    """
    import pyarrow as pa

    wanted = _chosen(tuple(names or COLUMN_NAMES))
    there = rows.schema.names
    arrays = [
        _fitted(rows.column(name) if name in there else None, kind, rows.num_rows)
        for name, kind in wanted.items()
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(wanted))


@cache
def _chosen(names: tuple[str, ...]) -> dict[str, Any]:
    """The types of columns by name, a struct's with the fields that are named."""
    import pyarrow as pa

    schema = arrow_schema()
    found: dict[str, Any] = {}
    for name in names:
        top, _, inner = name.partition(".")
        kind = schema.field(top).type
        if inner:
            so_far = list(found[top]) if top in found else []
            kind = pa.struct([*so_far, kind.field(inner)])
        found[top] = kind
    return found


def _fitted(column: Any, wanted: Any, count: int) -> Any:
    import pyarrow as pa

    if column is None:
        return pa.nulls(count, wanted)
    if not pa.types.is_struct(wanted) or column.type == wanted:
        return column
    there = {field.name: inner for field, inner in zip(column.type, column.flatten(), strict=True)}
    if list(there) == [field.name for field in wanted]:
        return column
    inner = [_fitted(there.get(field.name), field.type, count) for field in wanted]
    return pa.StructArray.from_arrays(inner, fields=list(wanted), mask=column.is_null())


def version_in(metadata: Mapping[bytes, bytes] | None) -> str | None:
    """The schema version that a Parquet file tells of itself; None if it tells none.

    Arrow keeps it beside the columns. Spark keeps nothing there but its own schema, so a file that
    Spark wrote has the version with the first column.
    """
    found = metadata or {}
    version = found.get(VERSION_KEY.encode())
    if version is not None:
        return version.decode()
    try:
        columns = json.loads(found.get(_SPARK_SCHEMA, b"{}")).get("fields", [])
        told = [column.get("metadata", {}).get(VERSION_KEY) for column in columns]
    except (ValueError, AttributeError, TypeError):
        return None
    return next((str(one) for one in told if one is not None), None)


def _lazy_raw() -> None:
    """Make `Row.raw` encode the row's item when no octets are stored.

    The slot stays where they are stored; only reading it is changed, so constructor, `replace` and
    comparison work as for any field.
    """
    slot = Row.__dict__["raw"]

    def read(row: Row) -> bytes | None:
        raw: bytes | None = slot.__get__(row, Row)
        if raw is None and row.item is not None:
            from .wire_items import codec_of

            raw = codec_of(row.item).encode(row.item)
        return raw

    setattr(Row, slot.__name__, property(read, slot.__set__, doc="the frame's octets"))


_lazy_raw()
