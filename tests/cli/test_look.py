"""`workbench look`: one page about a capture, as text, as a file and in a notebook."""

import base64
import errno
import gzip
import io
import json
import os
import re
import shlex
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

import workbench
from tests.capture.capture_builder import blocks
from tests.cli.test_follow import as_pcap, packets_of, pcap_of
from workbench.capture.importer import import_capture
from workbench.capture.packet import segment_of
from workbench.cli import main
from workbench.exercises.capture_desk import CaptureDesk
from workbench.trace import files
from workbench.trace.connections import Connections
from workbench.trace.cut import cut
from workbench.views.opening import scene_of
from workbench.views.stills import scene_still
from workbench.views.story_page import SHOWN_LINES, WIDTH


def scene_in(page):
    """The scene that a page holds."""
    stored = re.search(r'id="scene">([^<]*)<', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(stored)))


HOSTILE = "<script>alert(1)</script>\x1b[2J"


@pytest.fixture
def capture(repo):
    """A consumer with a small credit that answers late."""
    return repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"


def test_the_text_begins_with_the_worst_and_ends_with_what_was_read(capture, capsys):
    """Each link's story, the stalls by brake, the worst frame in full, what cannot be told."""
    assert main(["look", str(capture)]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[1].startswith("The longest stall: 802 ms on c1/1 rcv-0-/queues/cap_b")
    order = [
        told.index(words)
        for words in (
            "The broker waited 4 times", "Its receiver granted credit 4 times",
            "Stalls by brake", "link-credit  4", "The worst frame", "row 20", "row 23",
            "delivery-id              9", "row 26", "What it cannot tell", "What was read",
        )
    ]  # fmt: skip
    assert order == sorted(order)
    assert "row 27" not in told


def test_the_page_opens_at_the_worst_frame(capture, tmp_path, capsys):
    """One file with the report above the stepper; the same words as the text."""
    page = tmp_path / "page.html"
    assert main(["look", str(capture), "-o", str(page)]) == 0
    assert "The longest stall: 802 ms" in capsys.readouterr().err
    text = page.read_text("utf-8")
    doc = scene_in(text)
    assert len(doc["branches"][0]["steps"]) == 56
    assert "wanted || 23 });" in text
    assert "The broker waited 4 times" in text
    assert text.count("<script") == 2
    assert "style=" not in text.split("<body>")[1].split('<script type="module"')[0]


def test_the_page_shows_what_a_row_of_the_same_trace_opens_with(repo, tmp_path):
    """Links and counters of before the slice stand in it."""
    capture = repo / "data" / "captures" / "rmq43_a_publisher_grants.pcapng"
    looked = workbench.look(capture)
    files.write(tmp_path / "t.parquet", import_capture(capture).rows)
    opened = cut(tmp_path / "t.parquet", looked.opened.seq)
    assert opened.rows[0].seq > 0
    doc, place = scene_of(opened, title=looked.name)
    assert place == opened.place
    assert scene_in(looked.page()) == doc


@pytest.mark.parametrize("name", ["rmq43_a_publisher_grants", "rmq43_c_drain"])
def test_text_and_page_call_the_worst_frame_by_the_same_row(repo, name):
    """Also where the page shows a slice, or one connection of several: `show --at` takes it."""
    looked = workbench.look(repo / "data" / "captures" / f"{name}.pcapng")
    seq = looked.story.worst[1].seq
    assert f"  row {seq}  t=" in "\n".join(looked.text())
    doc, place = scene_of(looked.opened)
    assert doc["branches"][0]["steps"][place]["row"] == seq
    told = scene_still(doc, place)
    assert f"row {seq} · t = " in told
    assert f"> {seq:>4}  " in told


def test_numbers_of_messages_are_told_like_those_of_packets(capture):
    """With a separator, in the text and on the page; none and one in words."""
    looked = workbench.look(capture)
    for messages, words in ((53_587, "53,587 messages"), (1, "1 message"), (0, "no messages")):
        links = [replace(looked.story.links[0], messages=messages)]
        told = replace(looked, story=replace(looked.story, links=links))
        assert f"the broker sends; {words}\n" in "\n".join(told.text())
        assert f"the broker sends; {words}<" in told._repr_html_()


def test_waits_that_fall_on_one_place_of_a_strip_are_drawn_once(capture):
    """A consumer with a prefetch of 1 waits after each of a hundred thousand messages."""
    looked = workbench.look(capture)
    (link,), lasted_us = looked.story.links, looked.story.lasted_us
    wait = next(one for one in link.intervals if one.stall)
    many = [
        replace(wait, start_us=at, end_us=at + 30, what=what)
        for at in range(0, lasted_us, 50)
        for what in ("link-credit", "session-window")
    ]
    story = replace(looked.story, links=[replace(link, intervals=many)])
    drawn = replace(looked, story=story)._repr_html_()
    assert len(many) > 80_000
    assert 1_000 < drawn.count("<rect") <= 2 * WIDTH + 3  # the strip itself, and two in the key


def test_a_file_that_is_cut_is_told_beside_the_headline(capture, tmp_path, capsys):
    """Of what came after the cut nobody knows: who reads the headline alone must know that."""
    place = tmp_path / "cut.pcapng"
    place.write_bytes(capture.read_bytes()[:6_000])
    assert main(["look", str(place)]) == 0
    first, headline, *_ = capsys.readouterr().out.splitlines()
    assert "frames of AMQP 1.0 on 1 connection of 1; the file ends in the middle of" in first
    assert headline.startswith("The longest stall")
    above, _ = workbench.look(place)._repr_html_().split('class="headline"')
    assert "the file ends in the middle of" in above


def test_a_capture_of_one_direction_says_so_and_what_to_do(capture, tmp_path):
    """As tcpdump's `src port` makes it; nobody is accused of what was not heard."""
    place = tmp_path / "one.pcap"
    packets = packets_of(capture.read_bytes())
    sender = segment_of(packets[0]).destination
    place.write_bytes(pcap_of([one for one in packets if segment_of(one).source == sender]))
    told = workbench.look(place).story
    assert told.headline == (
        "Nothing that the client said on c1 is in the capture: capture both directions. No stall"
        " can be proved: octets are missing in the trace."
    )
    assert not told.wrong


def test_packets_that_are_cut_are_told_beside_the_headline(capture, tmp_path, capsys):
    """What was not kept cannot be told: whoever reads on must know why, and what to do."""
    place = tmp_path / "cut.pcap"
    place.write_bytes(as_pcap(capture.read_bytes(), kept=400))
    assert main(["look", str(place)]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    words = "packets kept only in part; capture whole packets (tcpdump -s 0)"
    assert re.search(rf"; \d {re.escape(words)}$", first)
    assert not any(words in line for line in others)


RST = 0x04
FLAGS = 14 + 20 + 13  # in a packet: behind Ethernet and IPv4


def test_what_may_have_waited_is_marked_among_the_stalls(repo, capture, tmp_path, capsys):
    """The headline says that none can be proved: the table below it must not say otherwise."""
    drained = repo / "data" / "captures" / "rmq40_c_drain.pcapng"
    for path, told, late in ((drained, "No stall can be proved.", 4), (capture, "The longest", 0)):
        assert main(["look", str(path)]) == 0
        text = capsys.readouterr().out
        assert text.splitlines()[1].startswith(told)
        head, row = text.split("Stalls by brake\n")[1].splitlines()[:2]
        cells = dict(
            zip(re.split(r"  +", head.strip()), re.split(r"  +", row.strip()), strict=True)
        )
        assert (cells["stalls"], cells["not proved"]) == ("4", str(late))
        page = tmp_path / "p.html"
        assert main(["look", str(path), "-o", str(page)]) == 0
        heads, values = (re.findall(f"<{cell}>([^<]*)</{cell}>", page.read_text("utf-8"))
                         for cell in ("th", "td"))  # fmt: skip
        assert dict(zip(heads, values, strict=False)) == cells
        capsys.readouterr()


@pytest.mark.parametrize("closed", [False, True])
def test_a_consumer_that_has_fallen_silent_is_told_and_whether_it_is_there(
    capture, tmp_path, closed
):
    """A minute later TCP asks whether the other end lives, or hears that it does not."""
    packets = packets_of(capture.read_bytes())[:23]
    last = packets[-1]
    data = bytearray(last.data)
    data[FLAGS] |= RST if closed else 0
    packets.append(structs.replace(last, data=bytes(data), t_us=last.t_us + 60_000_000))
    place = tmp_path / "silent.pcap"
    place.write_bytes(pcap_of(packets))
    headline = workbench.look(place).story.headline
    assert headline.startswith("The longest stall: 401 ms on c1/1 rcv-0-/queues/cap_b")
    words = " When the trace ends, c1/1 rcv-0-/queues/cap_b has had no credit for 60 s."
    assert headline.endswith(words) is not closed
    words = " When it was closed, c1/1 rcv-0-/queues/cap_b had had no credit for 60 s."
    assert headline.endswith(words) is closed


def test_an_end_that_does_not_read_is_told(repo):
    """A publisher's frames wait in sockets: TCP alone tells, in a packet without a frame."""
    told = workbench.look(repo / "tests" / "capture" / "data" / "slow_reader.pcap")
    assert told.story.headline.startswith("No stall can be proved. The longest time in which ")
    assert told.story.headline.endswith("on c1/1 published, from 0.731 s on; TCP window 0.")
    assert any(line.endswith("TCP window of 0 3 times") for line in told.about)
    assert "stalled until that end reads" in "\n".join(told.text())


def test_a_prefetch_is_used_up_until_a_transaction_is_committed(repo):
    """pika 1.4 and RabbitMQ 3.10.8: two are acknowledged at once, and committed after 0.7 s."""
    told = workbench.look(repo / "tests" / "capture" / "data" / "transactions.pcap").story
    assert told.headline == (
        "The longest stall: 705 ms on c1/2 delivered, from 1.010 s on; blocked by prefetch."
    )
    assert told.links[0].more == (
        "Acknowledged after 344 µs typically, 393 µs at most.",
        "The limit was 2; it was reached 2 times, for 1.4 s in all.",
        "An acknowledgement in a transaction counts when that is committed.",
    )


def test_a_prefetch_of_the_whole_channel_counts_all_of_its_consumers(repo):
    """Three for two consumers, who acknowledge after a second, three times: pika, as before."""
    told = workbench.look(repo / "tests" / "capture" / "data" / "shared_prefetch.pcap").story
    assert told.links[0].more[1] == (
        "The limit was 3; it was reached 6 times by 2 consumers, for 6.2 s in all."
    )


def test_a_capture_says_when_it_was_stopped_and_so_how_long_a_consumer_is_stuck(repo):
    """Four seconds after the last packet: of five deliveries pika acknowledges none."""
    told = workbench.look(repo / "tests" / "capture" / "data" / "stalled_to_the_end.pcapng").story
    assert told.headline == (
        "No stall can be proved. The longest time in which a sender could not have sent: 4.1 s on"
        " c2/1 delivered, from 1.967 s on; prefetch used up."
    )


def test_an_end_without_a_word_is_told_and_how_long_the_other_was_silent(repo):
    """RabbitMQ says nothing when heartbeats are missed, or when its reader has failed.

    The notes of the capture tell what was done: E7 and E8 stop the reader, E19 has no right to
    come in, E24 speaks another version, E25 agrees on a heartbeat of a second and is silent.
    """
    told = workbench.look(repo / "data/captures/amqp091/rmq43_e1_amqp091_errors.pcapng").story
    dropped = [line for line in told.wrong if " without a close" in line]
    by_broker = [line.partition(":")[0] for line in dropped if "the broker ended it" in line]
    assert by_broker == ["c7", "c8", "c19", "c20", "c21", "c22", "c23", "c24", "c25"]
    assert [line for line in dropped if "nothing had come" in line] == [
        "c25: the broker ended it at 26.772 s without a close; nothing had come for 3.0 s, with a"
        " heartbeat every 1 s"
    ]


def test_a_file_whose_name_is_no_text_is_read_and_written_like_others(
    capture, tmp_path, monkeypatch
):
    """A name is octets: in an old archive those of another code page."""
    odd = os.fsdecode(b"caf\xe9")
    place, trace, page = (tmp_path / f"{odd}{end}" for end in (".pcapng", ".parquet", ".html"))
    try:
        place.write_bytes(capture.read_bytes())
    except OSError:
        pytest.skip("no such names here")
    for stream in ("stdout", "stderr"):  # as `main` makes them for its own process
        told = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
        monkeypatch.setattr(sys, stream, told)
    for words in (("import", place, "-o", trace), ("import", place, "-o", tmp_path),
                  ("look", place), ("look", place, "-o", page), ("look", trace, "-o", page),
                  ("analyze", trace, "summary"), ("run", "credit", "-o", trace),
                  ("show", trace)):  # fmt: skip
        assert main([str(word) for word in words]) == 0, words
    imported = f"caf\N{REPLACEMENT CHARACTER}-{import_capture(capture).rows[0].run[-8:]}.parquet"
    made = {file.name for file in tmp_path.iterdir()}
    assert made == {place.name, trace.name, page.name, imported}
    sys.stdout.flush()
    sys.stderr.flush()
    for told in (sys.stdout.buffer.getvalue(), sys.stderr.buffer.getvalue()):
        assert "caf\N{REPLACEMENT CHARACTER}".encode() in told
        assert rb"\udce9" not in told


def test_a_capture_is_not_written_over(capture, tmp_path, capsys):
    """Whatever it is called, and however its name is written; and no trace by `export`."""
    place = tmp_path / "mine.html"
    for data, words in ((capture.read_bytes(), "look"), (b"PAR1", "export")):
        place.write_bytes(data)
        assert main([words, str(place), "-o", f"{tmp_path}/../{tmp_path.name}/mine.html"]) == 2
        error = capsys.readouterr().err
        assert "mine.html: is the output as well; give another name with -o" in error
        assert error.count("\n") == 1
        assert place.read_bytes() == data


def test_hostile_names_stay_text(capture, tmp_path, capsys):
    """A link's name is a peer's: it moves no cursor and ends no element."""
    rows = import_capture(capture).rows
    trace = tmp_path / "t.parquet"
    files.write(trace, [replace(row, link=HOSTILE) if row.link else row for row in rows])
    assert main(["look", str(trace)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(["look", str(trace), "-o", str(tmp_path / "p.html")]) == 0
    text = (tmp_path / "p.html").read_text("utf-8")
    assert text.count("<script") == 2
    assert "\x1b" not in text
    assert "<script>" not in workbench.look(trace)._repr_html_()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.pcap", None, "No such file"),
        ("empty.pcap", b"", "the file is empty"),
        ("text.pcap", b"GET / HTTP/1.1\r\n", "not a capture: it begins with"),
        ("cut.pcap", b"\xd4\xc3\xb2\xa1\x02", "the pcap header is cut short"),
        ("no.parquet", b"PAR1", "is not a Parquet file"),
    ],
)
def test_what_cannot_be_looked_at_is_told_in_one_line(tmp_path, capsys, name, content, words):
    """On the command line, and in the notebook to which it was handed."""
    place = tmp_path / name
    if content is not None:
        place.write_bytes(content)
    assert main(["look", str(place), "-o", str(tmp_path / "p.html")]) == 1
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "p.html").exists()
    desk = CaptureDesk()
    desk.look_at(place)
    assert words in desk.line.value
    assert desk.look is None


def test_a_folder_is_told_what_look_takes(capture, tmp_path, capsys):
    """Captures lie in it, and look takes one; a folder with a trace is one."""
    told = (
        f"workbench look: {tmp_path}: no trace in this folder; look takes one capture: name a file"
        " in it\n"
    )
    assert main(["look", str(tmp_path)]) == 1  # nothing is in it yet
    assert capsys.readouterr().err == told
    (tmp_path / "a.pcapng").write_bytes(capture.read_bytes())
    assert main(["look", str(tmp_path)]) == 1
    assert capsys.readouterr().err == told
    files.write(tmp_path / "t.parquet", import_capture(capture).rows)
    assert main(["look", str(tmp_path), "--port", "5672"]) == 1
    assert "--port is for a capture, and this is a trace" in capsys.readouterr().err
    assert main(["look", str(tmp_path)]) == 0


@pytest.mark.parametrize("words", [["look"], ["analyze", "summary"], ["import", "-o", "out"]])
@pytest.mark.parametrize("inside", [".", "inner"])
def test_what_may_not_be_read_is_not_said_to_be_empty(
    tmp_path, monkeypatch, capsys, capture, words, inside
):
    """A folder of another user, beside files of ours too: what is in it nobody knows."""
    really, ours = os.scandir, tmp_path / "ours"
    theirs = ours / inside

    def refused(path="."):
        if Path(path) == theirs:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really(path)

    monkeypatch.chdir(tmp_path)
    theirs.mkdir(parents=True)
    files.write(ours / "t.parquet", import_capture(capture).rows)
    (ours / "a.pcapng").write_bytes(capture.read_bytes())
    monkeypatch.setattr("os.scandir", refused)
    command, *more = words
    assert main([command, str(ours), *more]) == 1
    assert capsys.readouterr().err == f"workbench {command}: {theirs}: Permission denied\n"


def test_what_lies_aside_in_a_folder_may_be_kept_from_us(tmp_path, monkeypatch):
    """Hidden folders hold no traces, so nobody misses what is in one."""
    really, hidden = os.scandir, tmp_path / ".theirs"

    def refused(path="."):
        if Path(path) == hidden:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really(path)

    hidden.mkdir()
    files.write(tmp_path / "t.parquet", [])
    monkeypatch.setattr("os.scandir", refused)
    assert files.trace_files(tmp_path) == [tmp_path / "t.parquet"]


def test_the_port_says_who_is_the_broker(repo, tmp_path, capsys):
    """A capture that begins with acknowledgements has nothing else that tells."""
    path = repo / "data" / "captures" / "amqp091" / "rmq43_q1_amqp091_prefetch_and_ack.pcapng"
    place = tmp_path / "middle.pcap"
    place.write_bytes(pcap_of(packets_of(path.read_bytes())[23:45]))
    assert main(["look", str(place), "--port", "56430"]) == 0
    assert "c1/1 delivered: the broker sends; 10 messages" in capsys.readouterr().out
    assert main(["look", str(place), "--port", "0"]) == 2
    assert "0 is no port; legal: 1 to 65535" in capsys.readouterr().err


def test_a_trace_whose_frames_have_no_number_is_refused(capture, tmp_path, capsys):
    """All of them would count as one frame; the line says what would do."""
    place = tmp_path / "theirs.parquet"
    files.write(place, [replace(row, frame_id=None) for row in import_capture(capture).rows])
    assert main(["look", str(place)]) == 1
    told = capsys.readouterr().err
    assert "column frame_id is null at seq 0" in told
    assert told.endswith("in a capture its seq will do\n")


def test_another_protocol_is_read_too(repo, tmp_path, capsys):
    """A page comes of a capture of AMQP 0-9-1."""
    (path, *_) = sorted((repo / "data" / "captures" / "amqp091").glob("*.pcap*"))
    assert main(["look", str(path), "-o", str(tmp_path / "p.html")]) == 0
    assert (tmp_path / "p.html").exists()


def test_what_is_too_large_is_left_to_analyze(capture, monkeypatch, tmp_path, capsys):
    """The line says how, in commands that can be given as they stand."""
    monkeypatch.setattr("workbench.cli.looking.PLAIN_ROWS", 10)
    place = tmp_path / "two words.pcapng"
    place.write_bytes(capture.read_bytes())
    assert main(["look", str(place)]) == 1
    told = capsys.readouterr().err
    first, then = re.search("; (workbench import .*), and (workbench analyze .*)", told).groups()
    monkeypatch.chdir(tmp_path)
    for command in (first, then):
        assert main(shlex.split(command)[1:]) == 0
    capsys.readouterr()
    assert main(["look", "large.parquet"]) == 1  # a trace needs no import
    assert capsys.readouterr().err.endswith("; workbench analyze large.parquet summary\n")


def test_a_capture_may_be_larger_than_what_a_connection_may_be(repo, monkeypatch):
    """Its connections are looked at some at a time, and what is told is the same."""
    path = repo / "data" / "captures" / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng"
    whole = workbench.look(path)
    assert len({link.key.connection for link in whole.story.links}) == 6
    monkeypatch.setattr("workbench.cli.looking.PLAIN_ROWS", 100)
    monkeypatch.setattr(Connections, "parts", partialmethod(Connections.parts, 1))
    assert list(workbench.look(path).text()) == list(whole.text())


def test_where_rows_wait_may_be_full(capture, monkeypatch, tmp_path, capsys):
    """It is told in one line, which names the file that was given, and nothing is left."""

    def full(*_arguments, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    assert main(["look", str(capture)]) == 1
    error = capsys.readouterr().err
    assert f"{capture.name}: its rows wait in {tmp_path}: cannot write there: No space" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_of_what_was_read_the_text_has_a_page(capture):
    """Of a thousand connections there are five thousand lines."""
    looked = workbench.look(capture)
    told = replace(looked, about=("2,000 packets", *(f"line {n}" for n in range(5_000))))
    text = list(told.text())
    assert text[-2:] == ["  line 99", "  ... and 4,900 more lines; workbench import tells all"]
    assert told._repr_html_().count("<li>line ") == SHOWN_LINES


def test_a_file_that_is_handed_over_is_looked_at(capture):
    """The report, and the stage at the worst frame; the next file takes its place."""
    desk = CaptureDesk()
    assert "Choose a capture" in repr(desk)
    said = []
    desk.line.observe(lambda change: said.append(change["new"]), names="value")
    data = capture.read_bytes()
    file = {
        "name": "../../mine.pcapng", "type": "", "size": len(data), "content": memoryview(data),
        "last_modified": datetime.now(UTC),
    }  # fmt: skip
    desk.upload.value = (file,)
    assert desk.look.name == "mine.pcapng"
    assert "mine.pcapng was read." in desk.line.value
    assert "The longest stall: 802 ms" in desk.report.value
    assert "The broker waited 4 times" in desk.report.value
    (stage,) = desk.steps.children
    assert stage.cursor == 23
    assert "The worst frame" in repr(desk)
    for words in (">reading: 0%", "following each link: 100% of 56 rows", ">what it cannot tell: "):
        assert any(words in line for line in said)
    desk.upload.value = ({**file, "size": 10**12},)
    assert "name its path instead" in desk.line.value
    assert (desk.look, desk.steps.children, desk.report.value) == (None, (), "")


def test_the_same_file_can_be_handed_over_again(capture, tmp_path):
    """By the button after something else was wrong, and by its path after it has changed."""
    desk = CaptureDesk()
    data = capture.read_bytes()
    file = {
        "name": "mine.pcapng", "type": "", "size": len(data), "content": memoryview(data),
        "last_modified": datetime.now(UTC),
    }  # fmt: skip
    desk.upload.value = (file,)
    typed(desk, tmp_path / "absent.pcap")
    assert "No such file" in desk.line.value
    desk.upload.value = (file,)
    assert "mine.pcapng was read." in desk.line.value
    place = tmp_path / "changing.pcap"
    place.write_bytes(b"")
    typed(desk, place)
    assert "the file is empty" in desk.line.value
    place.write_bytes(data)
    typed(desk, place)
    assert "changing.pcap was read." in desk.line.value


def test_a_path_may_stand_in_quotes_and_an_empty_one_is_told_what_to_do(capture):
    """As a file manager or a shell hands it over."""
    desk = CaptureDesk()
    for path in (f"{capture} ", f"'{capture}'", f' "{capture}"'):
        desk.look_at("")
        assert "press Enter" in desk.line.value
        assert desk.look is None
        desk.look_at(path)
        assert f"{capture.name} was read." in desk.line.value


def test_of_a_path_that_leads_nowhere_it_is_told_where_it_was_looked_for(tmp_path, monkeypatch):
    """A file that lies in another folder than the notebook is missed by its bare name."""
    monkeypatch.chdir(tmp_path)
    desk = CaptureDesk()
    typed(desk, "my.pcap")
    assert f"{tmp_path / 'my.pcap'}: No such file" in desk.line.value


def test_what_a_capture_said_stays_in_a_saved_notebook(capture):
    """Its name and the headline, as an output beside the desk; nothing of what cannot be read."""
    kept = []
    desk = CaptureDesk()
    desk.kept = SimpleNamespace(update=lambda shown: kept.append(shown.data))
    desk.look_at(capture)
    desk.look_at("absent.pcap")
    assert f"{capture.name}: The longest stall: 802 ms" in kept[0]
    assert "absent" not in kept[1]


def typed(desk, path):
    """A path in the field, and the Enter key."""
    desk.path.value = str(path)
    desk.path._handle_custom_msg({"event": "submit"}, [])


def test_a_trace_is_named_once(repo, tmp_path):
    """The first line says how many rows of it were read."""
    trace = tmp_path / "t.parquet"
    capture = repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"
    files.write(trace, import_capture(capture).rows)
    assert next(workbench.look(trace).text()) == "t.parquet: 56 rows"


def test_what_is_wrong_with_a_capture_is_told_once(capture, tmp_path):
    """In the first line: its damage, and a client that nothing but its port has told."""
    packets = list(blocks(capture))
    begun = next(place for place, block in enumerate(packets) if block[:4] == b"\x06\0\0\0")
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(b"".join([*packets[:begun], *packets[begun + 25 :]])[:-40])
    first, *others = workbench.look(cut).text()
    for words in ("the file ends in the middle of a block", "c1: its SYN is not in the capture"):
        assert words in first
        assert words not in "\n".join(others)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no names of open files here")
def test_of_a_pipe_it_is_told_what_to_do(capsys):
    """`tcpdump -w - | workbench look /dev/stdin`: a capture is read more than once."""
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading):
        assert main(["look", f"/dev/fd/{reading}"]) == 1
    assert f"{reading}: is a pipe; save the capture to a file first" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_of_a_device_it_is_told_too(capsys):
    """/dev/zero has no end."""
    assert main(["look", "/dev/zero"]) == 1
    assert "zero: is a device; save the capture to a file first" in capsys.readouterr().err
