"""Captures of real RabbitMQ, against three witnesses that are not ours.

The client of each capture logged every frame itself (`*.frames.txt`), a note says what was seen
(`*.note.txt`), and Wireshark's dissector reads the same file. The credit at every frame is worked
out a second time here, from the listing alone, in a few plain lines.

To run over more captures: WORKBENCH_CAPTURES=/some/folder pytest tests/capture/test_captures.py
"""

import ast
import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.amqp10.frame import decode_frame
from workbench.capture.importer import import_capture
from workbench.trace.schema import Row
from workbench.trace.taps import frame_row

FOLDER = Path(os.environ.get("WORKBENCH_CAPTURES", Path(__file__).parents[2] / "data/captures"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.pcapng"))
HERE = Path(__file__).parents[2] / "data/captures" == FOLDER
only_here = pytest.mark.skipif(not HERE, reason="about the captures of the repository")
WRAP = 2**32
SLOW = Path(__file__).parent / "data" / "slow_reader.pcap"
"""A publisher of AMQP 0-9-1 and a socket that is not read for a while, and then never again; the
TCP is that of Linux. Publishes were replayed from a capture of RabbitMQ."""

CONNECTION = re.compile(r"^(?:(\w+) +)?([\d.]+) (->|<-) ch(\d+) (\S+)(.*)$")


@cache
def imported(name: str) -> tuple[Row, ...]:
    """Rows of AMQP 1.0: some captures hold connections of 0-9-1, too."""
    rows = import_capture(FOLDER / f"{name}.pcapng").rows
    return tuple(row for row in rows if row.protocol != "amqp-0-9-1")


def split(text: str) -> dict[str, str]:
    """`key=value` pairs of a line; a value may hold spaces inside quotes and brackets."""
    fields: dict[str, str] = {}
    at = 0
    while match := re.compile(r" ([a-z][a-z-]*)=").match(text, at):
        start = at = match.end()
        depth, quote = 0, ""
        while at < len(text) and (depth or quote or text[at] != " "):
            char = text[at]
            if quote:
                at += char == "\\"
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            else:
                depth += (char in "([{") - (char in ")]}")
            at += 1
        fields[match[1].replace("-", "_")] = text[start:at]
    return fields


@cache
def listing(name: str) -> dict[str, list[tuple[str, int, str, dict[str, str], int]]]:
    """Frames by connection, in the client's own order: peer, channel, kind, fields, body octets."""
    found = defaultdict(list)
    for line in (FOLDER / f"{name}.frames.txt").read_text().splitlines():
        match = CONNECTION.match(line.strip())
        if match is None:
            continue
        connection, _, arrow, channel, kind, rest = match.groups()
        body = re.search(r" \+(\d+)B$", rest)
        peer = "client" if arrow == "->" else "broker"
        found[connection or ""].append(
            (peer, int(channel), kind, split(rest), int(body[1]) if body else 0)
        )
    return found


def frames(name: str) -> dict[str, list[Row]]:
    """Rows of frames by connection, without protocol headers and heartbeats."""
    found = defaultdict(list)
    for row in imported(name):
        if row.event == "observed" and row.kind not in ("protocol-header", "heartbeat"):
            found[row.connection].append(row)
    return found


def abbreviated(kind: str, fields: dict[str, str]) -> bool:
    """The client logged two flows that it sent in one segment by their credit alone."""
    return kind == "flow" and set(fields) == {"link_credit", "delivery_count"}


def as_logged(value: str) -> object:
    """A scalar of the listing, which is in Python's notation; None for what is not scalar."""
    if value[0] in "([{":
        return None
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


RENAMED = {"mechanisms": "sasl_server_mechanisms"}


def paired(name: str):
    """Rows of each connection beside the listing's frames of the same peer, in the row order."""
    logs = dict(listing(name))
    for rows in frames(name).values():
        opened = next(
            row.frame["container_id"]
            for row in rows
            if row.kind == "open" and row.from_peer == "client"
        )
        key = next(
            key
            for key, log in logs.items()
            if any(
                k == "open" and p == "client" and f["container_id"] == opened
                for p, _, k, f, _ in log
            )
        )
        log = logs.pop(key)
        queues = {
            peer: [entry for entry in log if entry[0] == peer] for peer in ("client", "broker")
        }
        yield [(row, queues[row.from_peer].pop(0)) for row in rows], queues
    assert not logs


@pytest.mark.parametrize("name", NAMES)
def test_every_frame_is_the_one_that_the_client_logged(name):
    """Kinds, directions, channels, every scalar field and body sizes equal the client's own log."""
    for pairs, rest in paired(name):
        assert rest == {"client": [], "broker": []}
        for row, (_, channel, kind, fields, body) in pairs:
            fields = {RENAMED.get(key, key): text for key, text in fields.items()}
            where = f"{name} row {row.seq}"
            assert row.kind == kind, where
            assert row.frame.get("channel", 0) == channel, where
            assert row.body_bytes or body == 0, where
            for key, text in fields.items():
                value = as_logged(text)
                if value is None:
                    assert key in row.extra, where
                    continue
                if key == "role":
                    value = "receiver" if value else "sender"
                if key == "delivery_count":
                    value %= WRAP  # the client logs what it reckoned, before it wraps
                assert row.frame[key] == value, where
            if not abbreviated(kind, fields):
                own = {"delivery_tag", "message_format"} if kind == "transfer" else set()
                assert set(row.frame) - {"channel", "extra_json"} - own <= set(fields), where


@pytest.mark.parametrize("name", NAMES)
def test_credit_at_every_frame_equals_a_plain_reckoning(name):
    """delivery-count and link-credit of the sender, from the listing by 2.6.7, at every frame."""
    checked = 0
    for pairs, _ in paired(name):
        links, handles = {}, {}
        for row, (peer, channel, kind, fields, _) in pairs:
            get = lambda key, fields=fields: as_logged(fields[key]) if key in fields else None  # noqa: E731
            if kind == "attach":
                sender = (
                    peer if get("role") is False else {"client": "broker", "broker": "client"}[peer]
                )
                key = (fields["name"], sender)
                again = key not in links or (peer, "attached") in links[key]
                if again:
                    links[key] = {"sender": sender, "credit": 0}
                link = links[key]
                link[peer, "attached"] = True
                handles[peer, channel, get("handle")] = link
                if sender == peer:
                    link["dc"] = get("initial_delivery_count")
            elif kind in ("flow", "transfer", "detach") and get("handle") is not None:
                link = handles[peer, channel, get("handle")]
            elif abbreviated(kind, fields):
                link = handles[peer, channel, 0]
            else:
                continue
            if kind == "transfer":
                if not link.get("more"):
                    link["dc"] = (link["dc"] + 1) % WRAP
                    link["credit"] -= 1
                link["more"] = get("more")
            elif kind == "flow" and peer == link["sender"]:
                back = (get("delivery_count") - link["dc"]) % WRAP
                link["dc"] = get("delivery_count")
                link["credit"] -= back
            elif kind == "flow":
                limit = (get("delivery_count") + get("link_credit")) % WRAP
                credit = (limit - link["dc"]) % WRAP
                link["credit"] = credit if credit < WRAP // 2 else credit - WRAP
            assert row.unknown == (), f"{name} row {row.seq}"
            assert row.ledger["link_credit"] == max(0, link["credit"]), f"{name} row {row.seq}"
            if "dc" in link:
                assert row.ledger["delivery_count"] == link["dc"], f"{name} row {row.seq}"
            checked += 1
    assert checked > 10


@pytest.mark.parametrize("name", NAMES)
def test_the_session_window_at_every_transfer_equals_a_plain_reckoning(name):
    """remote-incoming-window of the sender's end by 2.5.6, where a connection has one session."""
    for pairs, _ in paired(name):
        if sum(kind == "begin" for _, (_, _, kind, _, _) in pairs) != 2:
            continue
        other = {"client": "broker", "broker": "client"}
        first, sent, window = {}, {"client": 0, "broker": 0}, {}
        for row, (peer, _, kind, fields, _) in pairs:
            # What the client did not log of a flow is checked by the dissector below.
            number = dict(row.frame) if abbreviated(kind, fields) else {}
            number |= {key: as_logged(text) for key, text in fields.items()}
            if kind == "begin":
                first[peer] = number["next_outgoing_id"]
                window[other[peer]] = number["incoming_window"]
            elif kind == "flow" and "incoming_window" in number:
                me = other[peer]
                have = (number["next_incoming_id"] - first[me]) % WRAP
                window[me] = have + number["incoming_window"] - sent[me]
            elif kind == "transfer":
                sent[peer] += 1
                window[peer] -= 1
                assert row.ledger["remote_incoming_window"] == max(0, window[peer])
                assert row.ledger["next_outgoing_id"] == (first[peer] + sent[peer]) % WRAP


def tshark_frames(path: Path, port: int):
    """Frames as Wireshark's dissector has them, per source port."""
    out = subprocess.run(
        ["tshark", "-r", path, "-d", f"tcp.port=={port},amqp", "-Y", "amqp", "-T", "json",
         "--no-duplicate-keys"],
        check=True, capture_output=True,
    )  # fmt: skip
    found = defaultdict(list)
    for packet in json.loads(out.stdout):
        layers = packet["_source"]["layers"]
        layer = layers["amqp"]
        peer = "broker" if layers["tcp"]["tcp.srcport"] == str(port) else "client"
        key = layers["tcp"]["tcp.stream"], peer
        found[key].extend(layer if isinstance(layer, list) else [layer])
    return found


DISSECTOR = {
    "maxFrameSize": "max_frame_size", "channelMax": "channel_max", "idleTimeout": "idle_time_out",
    "containerId": "container_id", "hostname": "hostname", "remoteChannel": "remote_channel",
    "nextOutgoingId": "next_outgoing_id", "nextIncomingId": "next_incoming_id",
    "incomingWindow": "incoming_window", "outgoingWindow": "outgoing_window", "name": "name",
    "handleMax": "handle_max", "handle": "handle", "sndSettleMode": "snd_settle_mode",
    "rcvSettleMode": "rcv_settle_mode", "initDeliveryCount": "initial_delivery_count",
    "maxMessageSize": "max_message_size", "deliveryCount": "delivery_count",
    "linkCredit": "link_credit", "available": "available", "drain": "drain", "echo": "echo",
    "deliveryId": "delivery_id", "messageFormat": "message_format", "settled": "settled",
    "more": "more", "first": "first", "last": "last", "closed": "closed", "batchable": "batchable",
    "resume": "resume", "aborted": "aborted",
}  # fmt: skip


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_the_one_that_wireshark_reads(name):
    """Sizes, channels, performatives and scalar fields equal those of Wireshark's dissector."""
    port = int(re.search(r"port (\d+)", (FOLDER / f"{name}.note.txt").read_text())[1])
    theirs = tshark_frames(FOLDER / f"{name}.pcapng", port)
    ours = defaultdict(list)
    for row in imported(name):
        ours[str(int(row.connection[1:]) - 1), row.from_peer].append(row)
    theirs = {key: value for key, value in theirs.items() if "amqp.method.class" not in str(value)}
    assert {key: len(value) for key, value in ours.items()} == {
        key: len(value) for key, value in theirs.items()
    }
    fields = 0
    for key, rows in ours.items():
        for row, layer in zip(rows, theirs[key], strict=True):
            if row.kind == "protocol-header":
                assert layer["amqp.init.id"] == str(row.frame["protocol_id"])
                continue
            assert layer["amqp.length"] == str(row.frame_bytes)
            code = layer.get("amqp.performative") or layer.get("amqp.sasl.method")
            assert (code is None) == (row.kind == "heartbeat")
            for name_, value in dict(layer.get("amqp.method.arguments") or {}).items():
                short = name_.removeprefix("amqp.performative.arguments.")
                if name_ == short or short not in DISSECTOR:
                    continue
                ours_value = row.frame[DISSECTOR[short]]
                if isinstance(ours_value, bool):
                    ours_value = int(ours_value)
                assert str(ours_value) == value, (row.seq, short)
                fields += 1
    assert fields > 50


def flows(name: str, peer: str, **wanted: object) -> list[Row]:
    return [
        row
        for row in imported(name)
        if row.kind == "flow"
        and row.from_peer == peer
        and all(row.frame.get(key) == value for key, value in wanted.items())
    ]


@only_here
@pytest.mark.parametrize("name", ["rmq43_b_consumer_credit", "rmq40_b_consumer_credit"])
def test_the_note_on_consumer_credit_holds(name):
    """Credit 10 is 10; twice 4 is 4; two behind with 6 gives 4; 100 with 7 left leaves 93."""
    granted = [row.ledger["link_credit"] for row in flows(name, "client")]
    assert granted == [10, 4, 4, 4, 100]
    answer = flows(name, "broker")[-1]
    assert (answer.ledger["link_credit"], answer.ledger["available"]) == (93, 0)
    assert answer.brake == "no-message"
    exhausted = [
        row for row in imported(name) if row.kind == "transfer" and row.brake == "link-credit"
    ]
    assert [row.frame["delivery_id"] for row in exhausted] in (
        [9, 13, 17],
        [4294967292 + 9 - WRAP, 9, 13, 17],
    )


@only_here
def test_the_note_on_drain_holds():
    """Drain advances the delivery-count to the limit: credit 0, three transfers of ten used."""
    answers = flows("rmq43_c_drain", "broker", drain=True)
    assert [row.ledger["link_credit"] for row in answers] == [0] * len(answers)
    assert [row.frame["delivery_count"] for row in answers] == [1, 11, 1, 11]
    assert all(row.ledger["drain"] for row in answers)


@only_here
def test_the_note_on_publisher_grants_holds():
    """170 at attach; at the 85th and the 170th transfer 170 again; at 200 the window is 400."""
    rows = [row for row in imported("rmq43_a_publisher_grants") if row.link and "cap_a" in row.link]
    grants = [row for row in rows if row.kind == "flow" and row.from_peer == "broker"]
    first = [
        (
            row.frame["delivery_count"],
            row.ledger["link_credit"],
            row.ledger["remote_incoming_window"],
        )
        for row in grants[:2]
    ]
    assert first[0] == (0, 170, 400)
    assert first[1][0] == 85
    before = next(
        row for row in reversed(rows) if row.seq < grants[1].seq and row.kind == "transfer"
    )
    assert before.ledger["link_credit"] == 85
    window = flows("rmq43_a_publisher_grants", "broker", next_incoming_id=200)[0]
    assert "handle" not in window.frame
    assert window.ledger["remote_incoming_window"] == 400


@pytest.mark.parametrize("name", NAMES)
def test_the_importers_short_cut_makes_the_rows_of_the_recorder(name):
    """The importer builds its rows by hand for speed; they are those of `frame_row`."""
    in_message = {}
    for row in imported(name):
        if row.kind == "protocol-header":
            continue
        link = (row.connection, row.session, row.link, row.attach_no, row.link_sender)
        if row.kind == "transfer":
            in_message[link] = bool(row.frame.get("more"))
        scope = SimpleNamespace(
            session=row.session,
            link=row.link,
            link_sender=row.link_sender,
            attach_no=row.attach_no,
            link_ledger=row.ledger,
            session_ledger=None,
            unknown=row.unknown,
            in_message=in_message.get(link, False),
        )
        about = ("run", "seq", "t_us", "vantage", "event", "frame_id", "from_peer", "connection")
        plain = frame_row(
            decode_frame(row.raw),
            scope=scope,
            ledger_source="observed",
            t_raw_us=row.t_raw_us,
            raw=row.raw,
            **{key: getattr(row, key) for key in about},
        )
        plain.frame_bytes = row.frame_bytes  # which measures an encoding of our own
        assert row == plain
        assert row.frame_bytes == len(row.raw)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_when_an_end_has_no_room_is_what_its_packets_say():
    """Wireshark reads the window of each; from one of 0 to the next of another."""
    (capture,) = import_capture(SLOW).report.captures
    ((place, spans),) = capture.without_room.items()
    assert place == ("c1", "client")
    out = subprocess.run(
        ["tshark", "-r", SLOW, "-T", "fields", "-e", "frame.time_relative",
         "-e", "tcp.window_size_value", "-e", "tcp.srcport"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    packets = [line.split() for line in out.stdout.splitlines()]
    broker = packets[1][2]  # it answers the SYN
    theirs, since = [], None
    for when, window, port in packets:
        t_us = int(float(when) * 1_000_000)
        if port == broker and since is None and window == "0":
            since = t_us
        elif port == broker and since is not None and window != "0":
            theirs.append((since, t_us))
            since = None
    assert spans == [*theirs, (since, None)]
    assert len(spans) == 3
