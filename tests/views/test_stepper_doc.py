"""The document says what the trace says, at every row."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.trace import explain, fold
from workbench.trace.fold import Fold
from workbench.trace.schema import LEDGER_FIELDS, Row
from workbench.views.reader import UNSET, Reader
from workbench.views.stepper_doc import build, schema

COUNTERS = [field.name for field in LEDGER_FIELDS]


def ledgers(reader: Reader) -> dict[str, dict[str, Any]]:
    """The reader's cells by the title of their slot, as the fold would have them."""
    found: dict[str, dict[str, Any]] = {}
    for title, _group, _source, base, *names in reader.doc["slots"]:
        cells = reader.cells[base : base + len(names)]
        values = {
            name.replace("-", "_"): value
            for name, value in zip(names, cells, strict=True)
            if value is not UNSET
        }
        if values:
            found[title] = values
    return found


def folded(folding: Fold) -> dict[str, dict[str, Any]]:
    """The fold's ledgers by the same titles, brakes among them."""
    state = folding.state()
    titles = {
        "link": lambda vantage, scope: f"{vantage} · link {scope.link}",
        "session": lambda vantage, scope: f"{vantage} · session {scope.session}",
        "actor": lambda vantage, scope: vantage,
    }
    found: dict[str, dict[str, Any]] = {}
    for (vantage, scope), values in state.ledgers.items():
        found.setdefault(titles[scope.group](vantage, scope), {}).update(values)
    for (vantage, scope), brake in state.brakes.items():
        found.setdefault(titles["link"](vantage, scope), {})["brake"] = brake
    return {title: values for title, values in found.items() if values}


@st.composite
def traces(draw: st.DrawFn) -> list[Row]:
    """Rows of two links and an actor, with counters known, unknown and absent."""
    rows: list[Row] = []
    t_us, next_frame, flying = 0, 0, []
    for seq in range(draw(st.integers(0, 25))):
        t_us += draw(st.sampled_from([0, 0, 7, 90_000]))
        names = draw(st.lists(st.sampled_from(COUNTERS[:12]), unique=True, max_size=5))
        unknown = draw(st.lists(st.sampled_from(COUNTERS[:6]), unique=True, max_size=2))
        columns: dict[str, Any] = {
            "ledger": {
                name: draw(st.booleans() if name == "drain" else st.integers(0, 2**32 - 1))
                for name in names
                if name not in unknown
            },
            "unknown": tuple(unknown),
            "connection": "c1",
            "session": 0,
            "link": draw(st.sampled_from(["a", "b"])),
            "link_sender": "broker",
            "attach_no": 1,
            "brake": draw(st.sampled_from([None, "none", "link-credit"])),
        }
        event = draw(st.sampled_from(["sent", "received", "grant"]))
        if event == "received" and not flying:
            event = "sent"
        if event == "sent":
            frame_id, peer = next_frame, draw(st.sampled_from(["client", "broker"]))
            next_frame += 1
            flying.append((frame_id, peer))
            vantage = "client:x" if peer == "client" else "broker"
            columns |= {"frame_id": frame_id, "from_peer": peer, "kind": "flow", "frame": {}}
        elif event == "received":
            frame_id, peer = flying.pop(draw(st.integers(0, len(flying) - 1)))
            vantage = "broker" if peer == "client" else "client:x"
            columns |= {"frame_id": frame_id, "from_peer": peer, "kind": "flow", "frame": {}}
        else:
            vantage = "broker"
        columns = {"protocol": "amqp-1.0", **columns}
        rows.append(Row(run="r", seq=seq, t_us=t_us, vantage=vantage, event=event, **columns))
    return rows


@pytest.mark.slow
@settings(derandomize=True, max_examples=120, deadline=None)
@given(traces())
def test_deltas_give_the_fold_of_the_trace_at_every_row(rows: list[Row]) -> None:
    """What the browser shows after k deltas is what `trace.fold` says after k rows."""
    doc = json.loads(json.dumps(build(rows), allow_nan=False))
    jsonschema.validate(doc, schema())
    reader, folding = Reader(doc), Fold()
    for step, row in enumerate(rows, 1):
        folding.apply(row)
        reader.go(step)
        assert ledgers(reader) == folded(folding)
        assert len(reader.flights) == len(folding.in_flight)
        assert reader.t_us == row.t_us


@settings(derandomize=True, max_examples=60, deadline=None)
@given(traces(), st.integers(0, 25))
def test_a_slice_begins_with_the_state_before_it(rows: list[Row], cut: int) -> None:
    """A slice from the middle shows the right counters and frames in flight at once."""
    cut = min(cut, len(rows))
    start = fold(rows[:cut])
    reader = Reader(build(rows[cut:], start=start))
    assert ledgers(reader) == folded(Fold(start))
    reader.go(len(rows) - cut)
    whole = Reader(build(rows)).go(len(rows))
    assert ledgers(reader) == ledgers(whole)
    assert len(reader.flights) == len(whole.flights)


def test_the_document_carries_what_python_worked_out(racing) -> None:
    """Sentence, clause, reason and formula of each row are those of the explanation."""
    doc = build(racing.rows)
    reader = Reader(doc)
    for step, told in enumerate(explain(racing.rows), 1):
        row = reader.row(step)
        head = doc["heads"][row[0]]
        assert reader.text(row[4]) == told.sentence
        assert reader.text(row[6]) == (told.interesting or "")
        assert [reader.text(ref) for ref in row[5]][1::2] == [f.numbers for f in told.formulas[:2]]
        assert (doc["clauses"][head[5]][0] if head[5] >= 0 else None) == told.clause


def test_the_two_ends_of_a_link_stand_side_by_side(racing) -> None:
    """The sender's cells are the broker's, the receiver's the client's; both are compared."""
    doc = build(racing.rows)
    reader = Reader(doc).go(6)
    link = doc["links"][doc["link"]]
    assert (link["sender"]["who"], link["receiver"]["who"]) == ("broker", "client:r")
    shown = {
        label: (reader.cells[left], reader.cells[right]) for label, left, right, _ in link["rows"]
    }
    assert shown["link-credit"] == (1, 6)
    assert shown["delivery-count"] == (2, 1)
    assert all(compared for *_, compared in link["rows"])


def test_a_held_frame_holds_those_behind_it_and_nothing_else(story) -> None:
    """TCP keeps the order of one direction: the flow waits for the held one, the transfer not."""
    run = story()
    run.flow(0, "sent", 3)
    run.transfer(1, "sent", 1, 2)
    run.row("wire", "hold", connection="c1", details={"frame_id": 0})
    run.flow(2, "sent", 6)
    run.row("wire", "release", connection="c1", details={"frame_id": 0})
    reader = Reader(build(run.rows))
    assert reader.go(2).flights == {0: False, 1: False}
    assert reader.go(3).flights == {0: True, 1: False}
    assert reader.go(4).flights == {0: True, 1: False, 2: True}
    assert reader.go(5).flights == {0: False, 1: False, 2: False}


def test_a_closed_gate_holds_what_comes(story) -> None:
    """A direction that is held marks every frame in it, until it is let go."""
    run = story()
    run.row("wire", "hold", connection="c1", details={"direction": "c2b"})
    run.flow(0, "sent", 3)
    run.transfer(1, "sent", 1, 2)
    run.row("wire", "release", connection="c1", details={"direction": "c2b"})
    reader = Reader(build(run.rows))
    assert reader.go(3).flights == {0: True, 1: False}
    assert reader.go(4).flights == {0: False, 1: False}


def test_a_capture_shows_one_ledger(story) -> None:
    """One vantage: the sender's entitlement; what cannot be known is null, never guessed."""
    run = story()
    run.row(
        "wire",
        "observed",
        "flow",
        frame_id=0,
        from_peer="client",
        frame={"handle": 0, "link_credit": 3},
        ledger={"link_credit": 3},
        unknown=("delivery_count",),
        ledger_source="observed",
        **run.link,
    )
    doc = build(run.rows)
    jsonschema.validate(doc, schema())
    link = doc["links"][0]
    assert link["one"] == 1
    assert link["receiver"] is None
    reader = Reader(doc).go(1)
    values = {label: reader.cells[left] for label, left, _, _ in link["rows"]}
    assert values["link-credit"] == 3
    assert values["delivery-count"] is None
    assert reader.flights == {}


def test_a_shadow_ledger_is_named_as_such(story) -> None:
    """A foreign end shows no counters: the document says who computed them."""
    run = story()
    row = run.flow(0, "sent", 3)
    row.ledger_source = "shadow"
    link = build(run.rows)["links"][0]
    assert link["receiver"] == {"who": "client:r", "source": "shadow"}


def test_a_frame_in_flight_at_the_cut_keeps_its_numbers(racing) -> None:
    """Sent before the slice, received in it: what it carries is known from where it arrives."""
    doc = build(racing.rows[3:], start=fold(racing.rows[:3]))
    reader = Reader(doc)
    [(place, held)] = reader.flights.items()
    assert not held
    assert "delivery-id 0" in reader.frame_words(place)


def test_an_empty_trace_makes_a_document() -> None:
    """Nothing to show is no error."""
    doc = build([])
    jsonschema.validate(doc, schema())
    assert len(Reader(doc)) == 0


def test_a_document_of_another_version_is_refused() -> None:
    """The reader names the version it takes."""
    with pytest.raises(ValueError, match="version 1, not version 2"):
        Reader({**build([]), "version": 2})
