"""The trace hash tells whether two runs went alike."""

from __future__ import annotations

import dataclasses

import pytest

from tests.trace.rows import race
from workbench.trace import Row, trace_hash
from workbench.trace.hash import canonical_row


def test_hash_is_that_of_the_rows_without_run_raw_and_clause():
    """A name, the octets and a better reference to the specification do not change it."""
    rows = race()
    renamed = [dataclasses.replace(row, run="other", raw=b"octets", clause="9.9.9") for row in rows]
    assert trace_hash(renamed) == trace_hash(rows)


@pytest.mark.parametrize(
    "change",
    [
        {"seq": 9},
        {"t_us": 9},
        {"vantage": "x"},
        {"event": "note"},
        {"frame": {"handle": 1}},
        {"frame": {"delivery_tag": b"\x01"}},
        {"ledger": {"link_credit": 1}},
        {"ledger": {"drain": True}},
        {"unknown": ("drain",)},
        {"brake": "tcp"},
        {"brakes": ("tcp",)},
        {"body_bytes": 1},
        {"frame_091": {"channel": 1}},
    ],
)
def test_hash_changes_with_everything_else(change):
    """Every column but those three is part of the run."""
    rows = race()
    rows[2] = dataclasses.replace(rows[2], **change)
    assert trace_hash(rows) != trace_hash(race())


def test_canonical_form_is_pinned():
    """A change of the form would make every share code out there wrong."""
    row = Row(
        run="r",
        seq=1,
        t_us=2,
        vantage="broker",
        event="sent",
        protocol="amqp-1.0",
        kind="transfer",
        frame={"handle": 0, "delivery_tag": b"\x00\xff", "more": None},
        ledger={"link_credit": 3, "drain": False},
        brakes=("tcp",),
    )
    assert canonical_row(row) == (
        '{"brakes":["tcp"],"event":"sent","frame":{"delivery_tag":"00ff","handle":0},'
        '"kind":"transfer","ledger":{"drain":false,"link_credit":3},"protocol":"amqp-1.0",'
        '"seq":1,"t_us":2,"vantage":"broker"}'
    )
    assert trace_hash([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_order_of_rows_counts():
    """The same rows in another order are another run."""
    rows = race()
    assert trace_hash(rows[::-1]) != trace_hash(rows)
