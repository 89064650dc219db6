"""Frames of AMQP 0-10 in a trace: fields, counters, words, and back to frames."""

import shutil
import subprocess

import pytest

from tests.amqp010.strategies import every_frame
from tests.frontends.qpid_client import Client
from workbench import presets
from workbench.amqp010 import commands as c
from workbench.amqp010.composite import UnknownCommand
from workbench.amqp010.frame import ProtocolHeader, encode_item, frames_of
from workbench.broker import Broker
from workbench.sim import VirtualClock
from workbench.trace.clauses import title
from workbench.trace.explain import explain
from workbench.trace.files import from_table, to_table
from workbench.trace.pcapng_out import export
from workbench.trace.rebuild import item_of
from workbench.trace.schema import AMQP_0_10
from workbench.trace.taps import Recorder, frame_row

MARKS = {"qpid.flow_stop_count": 2, "qpid.flow_resume_count": 2}


def row_of(item):
    """The row of a frame, without its octets."""
    row = frame_row(
        item, run="r", seq=0, t_us=0, vantage="wire", event="observed", frame_id=0,
        from_peer="client", connection="c1",
    )  # fmt: skip
    row.item = None
    return row


@pytest.fixture(scope="module")
def rows():
    """A run in which a queue is filled above its mark and emptied by a subscriber."""
    tap = Recorder("run")
    broker = Broker(VirtualClock(), presets.get("qpid-cpp"), tap)
    client = Client(broker)
    client.do(c.QueueDeclare("q", arguments=MARKS))
    client.put(*["q"] * 4, size=5)
    client.subscribe(mode=c.FlowMode.CREDIT, MESSAGE=3, BYTE=c.UNLIMITED)
    for transfers in client.ids():
        client.do(c.MessageAccept(transfers))
    client.session.flush()
    client.rest()
    client.do(c.MessageFlow("nobody", 0, 1))
    client.amqp.close()
    client.rest()
    assert tap.problems == []
    return tap.rows


def test_a_row_without_octets_becomes_its_frame_again():
    """Every control and command, every field; a body is zeros, for a row keeps none."""
    unknown = list(frames_of(1, UnknownCommand(code=0x0F01, octets=b"\x00\x00", sync=True)))
    for item in (ProtocolHeader(), *every_frame(), *unknown):
        row = row_of(item)
        assert row.protocol == AMQP_0_10
        assert encode_item(item_of(row)) == encode_item(item), row.kind


def test_each_row_has_its_frame_s_fields_and_the_counters_of_its_end(rows):
    """Sent and received; the broker's end knows credit, the client's what is incomplete."""
    frames = [row for row in rows if row.is_frame]
    assert {row.protocol for row in frames} == {AMQP_0_10}
    flows = [row for row in frames if row.kind == "message.flow" and row.event == "received"]
    assert [(row.frame_010["unit"], row.frame_010["value"]) for row in flows] == [
        (0, 3), (1, c.UNLIMITED), (0, 1),
    ]  # fmt: skip
    assert [row.ledger.get("credit_messages") for row in flows] == [3, 3, None]
    sent = [row for row in frames if row.kind == "message.transfer" and row.vantage == "broker"
            and row.event == "sent"]  # fmt: skip
    assert [row.ledger["credit_messages"] for row in sent] == [2, 1, 0]
    assert {(row.link, row.link_sender) for row in sent} == {("d", "broker")}
    published = [row for row in frames if row.kind == "message.transfer" and row.event == "sent"
                 and row.from_peer == "client"]  # fmt: skip
    counts = [row.ledger["incomplete_commands"] for row in published]
    assert counts == sorted(counts)
    assert counts[-1] - counts[0] == 3
    words = [(row.event, row.kind) for row in rows if row.queue == "q"]
    assert words.count(("enqueue", "held")) == 2
    assert words.count(("confirm", None)) == 2
    assert ("block", "queue-flow") in words
    assert ("unblock", "queue-flow") in words


def test_each_row_has_a_sentence_and_a_clause(rows):
    """No kind is told by its name alone where there is a word for it."""
    told = list(explain(rows))
    for row, one in zip(rows, told, strict=True):
        if row.is_frame and row.kind != "protocol-header":
            assert title(one.clause), row.kind
    said = {row.kind: one.sentence for row, one in zip(rows, told, strict=True)}
    assert "adds credit for 1 message to “nobody”" in said["message.flow"]
    assert "ends the session with error 404" in said["execution.exception"]
    assert "has completed commands 0 to " in said["session.completed"]
    assert "accepts command 2" in said["message.accept"]


def test_a_trace_is_the_same_after_a_file(rows):
    """Fields, counters and places; octets are made again from the fields."""
    back = from_table(to_table(rows, raw=False))
    assert [row.frame_010 for row in back] == [row.frame_010 for row in rows]
    assert [row.ledger for row in back] == [row.ledger for row in rows]
    for old, new in zip(rows, back, strict=True):
        if old.is_frame and old.kind != "body":
            assert encode_item(item_of(new)) == old.raw


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_wireshark_reads_the_export(rows, tmp_path):
    """None malformed, and each frame that was sent is there."""
    result = export(rows, tmp_path / "out.pcapng")
    assert result.frames == sum(row.event == "sent" for row in rows)
    out = subprocess.run(
        ["tshark", "-r", tmp_path / "out.pcapng", "-d", "tcp.port==5672,amqp", "-T", "fields",
         "-e", "_ws.expert.message", "-e", "_ws.col.Info"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "alformed" not in out
    assert out.count("message.transfer") == 7
