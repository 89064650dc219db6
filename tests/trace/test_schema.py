"""The schema declares every column once, and everybody else's copy of it agrees."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp10 import messaging, performatives
from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item
from workbench.amqp10.values import Symbol, UInt
from workbench.trace import schema
from workbench.trace.fields import DETAIL_FIELDS, FRAME_FIELDS
from workbench.trace.flatten import details_of, frame_fields, plain
from workbench.trace.schema_doc import markdown

SCALARS = {
    "string": "string",
    "symbol": "string",
    "ietf-language-tag": "string",
    "boolean": "bool",
    "binary": "binary",
    "delivery-tag": "binary",
    "role": "string",
    "ubyte": "int32",
    "ushort": "int32",
    "sender-settle-mode": "int32",
    "receiver-settle-mode": "int32",
    "sasl-code": "int32",
    "uint": "int64",
    "ulong": "int64",
    "milliseconds": "int64",
    "handle": "int64",
    "sequence-no": "int64",
    "transfer-number": "int64",
    "delivery-number": "int64",
    "message-format": "int64",
}


def test_frame_struct_is_the_union_of_the_performatives_scalar_fields():
    """Each scalar field of each performative has a column of its type, and nothing else has."""
    wanted = {}
    for kind in performatives.PERFORMATIVES.values():
        for spec in kind.FIELDS:
            if spec.type in SCALARS and not spec.multiple:
                wanted[spec.name] = SCALARS[spec.type]
    beside = {"channel", "protocol_id", "major", "minor", "revision", "extra_json"}
    found = {field.name: field.type for field in FRAME_FIELDS if field.name not in beside}
    assert found == wanted


def test_row_has_one_attribute_per_column():
    """A column without an attribute, or the other way round, would be lost on the way to disk."""
    attributes = [field.name for field in dataclasses.fields(schema.Row)]
    assert sorted(attributes) == sorted([*schema.COLUMN_NAMES, "item"])


def test_arrow_schema_carries_version_docs_units_and_nullability():
    """A file tells by itself what its columns mean."""
    arrow = schema.arrow_schema()
    assert arrow.metadata[b"workbench.trace.version"] == schema.SCHEMA_VERSION.encode()
    assert arrow.field("t_us").metadata[b"unit"] == b"us"
    assert not arrow.field("seq").nullable
    assert arrow.field("frame").nullable
    ledger = arrow.field("ledger").type
    assert [ledger.field(place).name for place in range(ledger.num_fields)] == [
        field.name for field in schema.LEDGER_FIELDS
    ]
    assert all(field.metadata[b"doc"] for field in arrow)


def test_names_are_unique_and_every_event_is_explained():
    """No column, field or event is declared twice or without a meaning."""
    structs = [column.fields for column in schema.COLUMNS if column.fields]
    for fields in (schema.COLUMNS, *structs):
        names = [field.name for field in fields]
        assert len(names) == len(set(names))
        assert all(field.doc for field in fields)
    assert len(schema.EVENTS) == len(set(schema.EVENTS))
    assert all(schema.INTERNAL_EVENTS.values())


def test_readme_of_data_has_the_schema_as_it_is():
    """The page that describes the columns is made from them; after a change, make it again."""
    page = Path(__file__).parents[2] / "data" / "README.md"
    text = page.read_text(encoding="utf-8")
    assert markdown() in text, "run: python -m workbench.trace.schema_doc data/README.md"


def test_absent_fields_stay_absent():
    """Defaults are not filled in: null means that the field was not on the wire."""
    kind, fields = frame_fields(
        Frame(
            channel=3,
            performative=performatives.Flow(
                incoming_window=10, next_outgoing_id=0, outgoing_window=5
            ),
        )
    )
    assert kind == "flow"
    assert fields == {
        "channel": 3,
        "incoming_window": 10,
        "next_outgoing_id": 0,
        "outgoing_window": 5,
    }


def test_termini_and_error_go_into_extra_json():
    """What is not scalar is JSON, a composite with its type first."""
    attach = performatives.Attach(
        name="l",
        handle=0,
        role=performatives.Role.RECEIVER,
        source=messaging.Source(address="/queues/q"),
        desired_capabilities=(Symbol("a"), Symbol("b")),
        max_message_size=2**64 - 1,
    )
    kind, fields = frame_fields(Frame(channel=0, performative=attach))
    assert (kind, fields["role"], fields["name"]) == ("attach", "receiver", "l")
    extra = json.loads(fields["extra_json"])
    assert extra["source"] == {"type": "source", "address": "/queues/q"}
    assert extra["desired_capabilities"] == ["a", "b"]
    # 2^64 - 1 fits no column, and is not cut down to one.
    assert extra["max_message_size"] == 2**64 - 1
    assert "max_message_size" not in fields


def test_header_heartbeat_and_sasl_have_kinds_of_their_own():
    """A protocol header and an empty frame are rows too."""
    header = ProtocolHeader(protocol_id=3)
    assert frame_fields(header) == (
        "protocol-header",
        {"protocol_id": 3, "major": 1, "minor": 0, "revision": 0},
    )
    assert frame_fields(Frame(channel=0, performative=None)) == ("heartbeat", {"channel": 0})
    init = performatives.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0u\0p")
    kind, fields = frame_fields(Frame(channel=0, performative=init))
    assert kind == "sasl-init"
    assert fields == {"mechanism": "PLAIN", "initial_response": b"\0u\0p"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (b"\x00\xff", {"binary": "00ff"}),
        ({Symbol("k"): UInt(1)}, {"k": 1}),
        ({1: "one"}, {"map": [[1, "one"]]}),
        ([None, True, -1], [None, True, -1]),
    ],
)
def test_any_amqp_value_becomes_json(value, expected):
    """Nothing in a trace is NaN or infinite, and nothing is lost without a trace."""
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


def test_raw_is_encoded_when_it_is_asked_for():
    """A row made from a frame holds no octets, and gives them when somebody looks."""
    frame = Frame(channel=0, performative=performatives.End())
    row = schema.Row(
        run="r", seq=0, t_us=0, vantage="broker", event="sent", protocol="amqp-1.0", item=frame
    )
    assert row.raw == encode_item(frame)
    stored = dataclasses.replace(row, raw=b"as captured")
    assert stored.raw == b"as captured"
    assert (
        schema.Row(run="r", seq=0, t_us=0, vantage="broker", event="note", protocol="internal").raw
        is None
    )


def test_reading_and_writing_is_what_loads_arrow():
    """`import workbench.trace` is light: a lesson that only plays a run needs no Arrow."""
    code = "import sys, workbench.trace; print(sorted({'pyarrow', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.dictionaries(
        st.sampled_from([*(field.name for field in DETAIL_FIELDS), "else"]),
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text() | st.lists(st.none()),
    )
)
def test_details_come_back_as_they_were_told(told):
    """What has a field of its own stands there, and all else in one text."""
    row = schema.Row(
        run="r", seq=0, t_us=0, vantage="b", event="note", protocol=schema.INTERNAL,
        details=details_of(told),
    )  # fmt: skip
    assert row.extra == told


def test_extra_of_a_row_never_fails():
    """What stands in extra_json came from a file: if it is no object, there is nothing in it."""
    row = schema.Row(run="r", seq=0, t_us=0, vantage="b", event="note", protocol="internal")
    assert row.extra == {}
    for text in ("", "[1]", "{", "[" * 100_000):
        row.frame = {"extra_json": text}
        assert row.extra == {}
