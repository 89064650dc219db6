"""Export: a trace becomes a capture that Wireshark reads and that reads back to the same frames."""

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.capture.capture_builder import PASSWORD, Script, bursts, record
from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item
from workbench.amqp10.performatives import Open
from workbench.capture.importer import import_capture
from workbench.capture.pcap import CaptureReader
from workbench.folds.violations import violations
from workbench.trace.packet_out import PcapngWriter
from workbench.trace.pcapng_out import ExportError, export
from workbench.trace.schema import Row

DATA = Path(__file__).parents[2] / "data/captures"
CAPTURES = sorted(DATA.glob("*.pcapng"))


def columns(row: Row, *names: str) -> tuple:
    return tuple(getattr(row, name) for name in names)


COUNTED = ("t_us", "from_peer", "kind", "frame", "raw", "ledger", "unknown", "session", "link",
           "attach_no", "brake", "body_bytes", "frame_bytes")  # fmt: skip


def virtual() -> list[Row]:
    """A run seen from both ends: each frame sent, then received 5 us later, without octets."""
    rows: list[Row] = []
    for number, (from_client, item) in enumerate(Script(rounds=2).frames()):
        me, peer = ("client:a", "broker") if from_client else ("broker", "client:a")
        for event, vantage in (("sent", me), ("received", peer)):
            rows.append(
                Row(
                    run="virtual",
                    seq=len(rows),
                    t_us=number * 10 + 5 * (event == "received"),
                    vantage=vantage,
                    event=event,
                    protocol="amqp-1.0",
                    frame_id=number,
                    connection="c1",
                    from_peer="client" if from_client else "broker",
                    item=item,
                )
            )
    return rows


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_capture_reads_back_to_the_same_frames_and_counters(path, tmp_path):
    """Import, export, import: octets, fields, times and ledgers are the same."""
    rows = import_capture(path).rows
    result = export(rows, tmp_path / "out.pcapng")
    back = import_capture(tmp_path / "out.pcapng").rows
    assert result.rebuilt == 0
    assert result.frames == len(rows)
    want = sorted(repr(columns(row, *COUNTED)) for row in rows)
    assert sorted(repr(columns(row, *COUNTED)) for row in back) == want


@pytest.mark.parametrize("back_us", [1_000, 1 << 60])
def test_a_clock_that_went_back_before_the_first_frame_leaves_the_times_as_they_are(
    back_us, tmp_path
):
    """A run's time stands still then; the packets' times are those of the run."""
    first, *rows = import_capture(CAPTURES[0]).rows
    assert first.t_raw_us is not None
    began = dataclasses.replace(first, t_raw_us=first.t_raw_us - back_us)
    export([began, *rows], tmp_path / "out.pcapng")
    back = import_capture(tmp_path / "out.pcapng").rows
    assert [row.t_us for row in back] == [row.t_us for row in (first, *rows)]
    assert [row.t_raw_us for row in back] == [row.t_raw_us for row in (first, *rows)]


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_frames_without_octets_are_made_from_their_fields(path, tmp_path):
    """All but the payload's contents is in the fields; sizes of payloads stay true."""
    rows = import_capture(path).rows
    bare = [dataclasses.replace(row, raw=None) for row in rows]
    result = export(bare, tmp_path / "out.pcapng")
    back = import_capture(tmp_path / "out.pcapng").rows
    assert result.rebuilt == len(rows)
    names = ("from_peer", "kind", "frame", "ledger", "body_bytes")
    want = sorted(repr(columns(row, *names)) for row in rows)
    assert sorted(repr(columns(row, *names)) for row in back) == want


@pytest.mark.parametrize("lost", [60, 140, 300])
def test_octets_that_a_trace_lacks_are_missing_in_its_capture_too(lost, tmp_path):
    """Else what nobody knows would be believed, and peers accused of what they have not done."""
    with (DATA / "rmq43_a_publisher_grants.pcapng").open("rb") as whole:
        packets = [one for one in CaptureReader(whole, "whole") if one and one.number != lost]
    with (tmp_path / "cut.pcapng").open("wb") as file:
        writer = PcapngWriter(file)
        for packet in packets:
            writer.packet(packet.t_us, packet.data)
    rows = import_capture(tmp_path / "cut.pcapng").rows
    assert [row.event for row in rows if not row.is_frame].count("gap") == 1
    export(rows, tmp_path / "out.pcapng")
    back = import_capture(tmp_path / "out.pcapng").rows
    assert [row.ledger for row in back if row.is_frame] == [
        row.ledger for row in rows if row.is_frame
    ]
    certain = [sum(one["certain"] for one in violations(told)) for told in (rows, back)]
    assert certain[0] == certain[1]


@pytest.mark.parametrize(("frames", "ended_by"), [(31, None), (None, "client")])
def test_a_connection_that_nobody_closed_is_not_closed_in_its_capture(frames, ended_by, tmp_path):
    """A consumer that is stalled to the end would have waited until it was closed."""
    rows = import_capture(DATA / "rmq43_b_consumer_credit.pcapng").rows[:frames]
    last = dataclasses.replace(rows[-1], seq=rows[-1].seq + 1, event="disconnect", kind=None)
    for more, by in (([], ended_by), ([last], "client")):
        export([*rows, *more], tmp_path / "out.pcapng")
        (capture,) = import_capture(tmp_path / "out.pcapng").report.captures
        assert [one.ended_by for one in capture.connections] == [by]


def test_a_frame_logged_at_both_ends_is_written_once(tmp_path):
    """One row per frame: the sent one where there is no observed one."""
    rows = virtual()
    result = export(rows, tmp_path / "out.pcapng")
    back = import_capture(tmp_path / "out.pcapng").rows
    assert result.frames == len(back) == len(rows) // 2
    assert [row.t_us for row in back] == [row.t_us for row in rows if row.event == "sent"]
    assert [row.raw for row in back] == [
        encode_item(row.item) for row in rows if row.event == "sent"
    ]
    received = [row for row in rows if row.event == "received"]
    assert export(received, tmp_path / "out.pcapng").frames == len(received)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_wireshark_finds_nothing_wrong(tmp_path):
    """No malformed frame, no bad checksum, no TCP sequence trouble, every frame dissected."""
    rows = import_capture(CAPTURES[0]).rows
    big = Script(rounds=2).frames()
    big = [(side, item) for side, item in big if not getattr(item, "payload", b"")]
    big.insert(7, (True, Frame(0, Open(container_id="x" * 200_000))))
    tape, _ = record(bursts(big))
    more = import_capture(tape.write(tmp_path / "big.pcapng")).rows
    for trace in (rows, more):
        export(trace, tmp_path / "out.pcapng")
        out = subprocess.run(
            ["tshark", "-r", tmp_path / "out.pcapng", "-o", "tcp.check_checksum:TRUE",
             "-o", "ip.check_checksum:TRUE", "-T", "fields", "-e", "_ws.expert.message",
             "-e", "amqp.length"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        experts = {line.split("\t")[0] for line in out.splitlines()}
        bad = [text for text in experts if any(word in text.lower() for word in (
            "malformed", "checksum", "unknown", "out-of-order", "retransmission", "not captured",
            "previous segment", "exception",
        ))]  # fmt: skip
        assert bad == []
        lengths = [n for line in out.splitlines() for n in line.split("\t")[1].split(",") if n]
        want = [str(row.frame_bytes) for row in trace if row.kind != "protocol-header"]
        assert sorted(lengths) == sorted(want)


def test_a_redacted_import_leaves_no_secret_in_the_export(tmp_path):
    """What was redacted on import cannot come back."""
    tape, _ = record(bursts(Script().frames()))
    path = tape.write(tmp_path / "secret.pcapng")
    export(import_capture(path).rows, tmp_path / "plain.pcapng")
    export(import_capture(path, redact=True).rows, tmp_path / "out.pcapng")
    for secret in (PASSWORD, b"pa55word", b"secret-body"):
        assert secret in (tmp_path / "plain.pcapng").read_bytes()
        assert secret not in (tmp_path / "out.pcapng").read_bytes()


def test_a_redacted_import_leaves_no_secret_in_the_parquet_file(tmp_path):
    """Neither octets nor fields nor JSON on disk hold it."""
    pytest.importorskip("pyarrow")
    from workbench.trace.files import read, write

    tape, _ = record(bursts(Script().frames()))
    path = tape.write(tmp_path / "secret.pcapng")
    for redact in (False, True):
        write(tmp_path / "out.parquet", import_capture(path, redact=redact).rows)
        # Columns are compressed, so what they hold is looked at, not the file alone.
        held = repr(read(tmp_path / "out.parquet")).encode()
        for secret in (b"pa55word", b"secret-body"):
            assert (secret in held) == (not redact)
            assert not redact or secret not in (tmp_path / "out.parquet").read_bytes()


def test_what_cannot_be_exported_is_one_line_and_leaves_the_old_file(tmp_path):
    """Nothing half-written: the file that was there stays."""
    path = tmp_path / "out.pcapng"
    path.write_bytes(b"old")
    row = Row(run="r", seq=0, t_us=0, vantage="wire", event="observed",
              protocol="amqp-1.0", frame_id=0, from_peer="client", connection="c1", kind="flow",
              frame={"handle": 0})  # fmt: skip
    for rows, message in (
        ([], "no frames"),
        ([row], "row 0: no flow can be made of its fields: .*incoming-window is mandatory"),
        ([dataclasses.replace(row, connection=None)], "without connection"),
        ([dataclasses.replace(row, kind="basic.ack")], "basic.ack is no frame of AMQP 1.0"),
    ):
        with pytest.raises(ExportError, match=message) as caught:
            export(rows, path)
        assert "\n" not in str(caught.value)
    good = dataclasses.replace(row, kind="protocol-header", item=ProtocolHeader())
    with pytest.raises(ExportError, match="No such file"):
        export([good], tmp_path / "missing" / "out.pcapng")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.pcapng"]


def test_several_connections_are_several_conversations(tmp_path):
    """Each connection of the trace gets its own client port; the broker's is 5672."""
    plan = sorted(
        (b for n in range(3) for b in bursts(Script(name=f"q{n}").frames(), n, 100 + n)),
        key=lambda burst: burst.t_us,
    )
    tape, _ = record(plan, port=61616)
    rows = import_capture(tape.write(tmp_path / "in.pcapng")).rows
    assert export(rows, tmp_path / "out.pcapng").connections == 3
    report = import_capture(tmp_path / "out.pcapng").report
    assert [c.broker for c in report.connections] == ["10.1.0.1:5672"] * 3
    assert len({c.client for c in report.connections}) == 3
