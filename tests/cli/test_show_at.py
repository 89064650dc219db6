"""One row of a trace on the terminal, with the rows round it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.runs import CAPTURES
from tests.capture.capture_builder import behind_attach, bursts, record
from tests.trace.rows import state_after
from workbench.capture.importer import import_capture
from workbench.cli.main import main
from workbench.cli.showing import fields, ledgers
from workbench.folds.stalls import stalls
from workbench.scenarios.run import run
from workbench.trace import files
from workbench.trace.schema import Row
from workbench.trace.words import frame_text


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A receiver that grants too little, in a file."""
    monkeypatch.chdir(tmp_path)
    played = run("credit", "rmq4.3", {"messages": 40})
    played = played.act(len(played.rows) - 1, "grant", link_credit=5)
    files.write("t.parquet", played.rows)
    return Path("t.parquet")


def test_the_step_of_a_stall_is_told_with_both_ends_counters(
    capsys: pytest.CaptureFixture[str], trace: Path
) -> None:
    """The line that a table of stalls ends with opens the row where it began."""
    stall = stalls(files.read(trace))[0]
    assert main(["show", str(trace), "--run", stall.run, "--at", str(stall.seq)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"row {stall.seq} ")
    assert any("held by" in line and stall.brake in line for line in out)


def test_the_steps_round_it_are_told_too(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    """In order, the one that is asked for in full."""
    assert main(["show", str(trace), "--at", "30", "--around", "2"]) == 0
    steps = [line for line in capsys.readouterr().out.splitlines() if line.startswith("row ")]
    assert [line.split()[1] for line in steps] == ["28", "29", "30", "31", "32"]


@pytest.mark.parametrize(
    ("capture", "kind", "told"),
    [
        ("rmq43_b_consumer_credit", "flow", {"link-credit": "10", "handle": "0"}),
        ("amqp091/rmq43_q1_amqp091_prefetch_and_ack", "basic.deliver",
         {"delivery-tag": "1", "routing-key": "cap_q1_classic"}),
        ("amqp091/rmq43_q1_amqp091_prefetch_and_ack", "connection.start-ok",
         {"mechanism": "PLAIN", "response": "12 octets, not shown"}),
    ],
)  # fmt: skip
def test_a_frame_is_told_with_its_fields_whatever_its_protocol(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, capture: str, kind: str,
    told: dict[str, str],
) -> None:  # fmt: skip
    """As they were on the wire; secrets are counted."""
    rows = import_capture(CAPTURES / f"{capture}.pcapng").rows
    files.write(tmp_path / "t.parquet", rows)
    seq = next(row.seq for row in rows if row.kind == kind)
    assert main(["show", str(tmp_path / "t.parquet"), "--at", str(seq)]) == 0
    out = capsys.readouterr().out
    below = out.partition("  fields on the wire\n")[2].splitlines()
    found = dict(line.strip().split(maxsplit=1) for line in below if len(line.split()) > 1)
    assert told.items() <= found.items()


def test_counters_of_a_link_whose_name_nobody_knows_are_told_as_that(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As before the first message of a link that was attached before the capture."""
    tape, _ = record(bursts(behind_attach(2)), handshake=False)
    rows = import_capture(tape.write(tmp_path / "late.pcapng")).rows
    files.write(tmp_path / "t.parquet", rows)
    assert main(["show", str(tmp_path / "t.parquet"), "--at", "0"]) == 0
    assert "  wire: a link without a name of c1\n" in capsys.readouterr().out


def test_what_is_told_of_a_step_does_not_depend_on_what_is_told_with_it(
    capsys: pytest.CaptureFixture[str], trace: Path
) -> None:
    """Its line is that of the whole transcript."""
    main(["show", str(trace)])
    whole = capsys.readouterr().out.splitlines()
    for seq in (0, 13, 26, 35):
        main(["show", str(trace), "--at", str(seq)])
        assert capsys.readouterr().out.splitlines()[0] in whole


@pytest.mark.parametrize("name", ["b1_amqp091_memory_alarm", "q1_amqp091_prefetch_and_ack"])
def test_no_two_counters_of_a_moment_have_one_heading(name: str, repo: Path) -> None:
    """A prefetch is a channel's, or a consumer's of it; both may be there."""
    path = repo / "data" / "captures" / "amqp091" / f"rmq43_{name}.pcapng"
    state = state_after(import_capture(path).rows)
    told = [line for line in ledgers(state, "c1") if line[:3] != "   "]
    assert len(told) == len(set(told)) > len(state.ledgers)
    consumer = next(key for _, key in state.ledgers if key.consumer)
    words = f"channel {consumer.session}, consumer {consumer.consumer} of {consumer.connection}"
    assert f"  wire: prefetch, {words}" in told


@pytest.mark.parametrize(
    ("response", "told"),
    [({"binary": "00616263"}, "4 octets"), ({"binary": "zz"}, "no octets"), (5, "no octets")],
)
def test_a_secret_is_counted_however_a_trace_has_it(response: object, told: str) -> None:
    """As JSON of octets, and as what a foreign trace has in their place."""
    row = Row(
        run="r", seq=0, t_us=0, vantage="wire", event="observed", protocol="amqp-0-10",
        kind="connection.start-ok", connection="c1", frame_id=0, from_peer="client",
        frame_010={"channel": 0, "extra_json": json.dumps({"response": response})},
    )  # fmt: skip
    assert frame_text(row) == f"connection.start-ok(response={told})"
    assert any(line.endswith(f" {told}, not shown") for line in fields(row))
