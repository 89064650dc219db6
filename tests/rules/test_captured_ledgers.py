"""Captures of real RabbitMQ fold to the ledgers that the specification gives.

Consumers' credit on 4.0 and 4.3, drains on both, and a single active consumer handed over. The
client of each capture logged every frame by itself (`*.frames.txt`); from that listing alone the
counters are worked out here by the words of 2.5.6, 2.6.7 and 2.6.12, in numbers that do not wrap.
What the capture folds to must be the same after every frame.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from workbench.capture.importer import import_capture
from workbench.trace.fold import Fold, Scope

FOLDER = Path(__file__).parents[2] / "data/captures"
NAMES = [
    "rmq40_b_consumer_credit",
    "rmq43_b_consumer_credit",
    "rmq40_c_drain",
    "rmq43_c_drain",
    "rmq43_h_sac_handover",
]
WRAP = 2**32
LINE = re.compile(r"^(?:(\w+) +)?[\d.]+ (->|<-) ch0 (\S+)(.*)$")
FIELD = re.compile(r" ([a-z-]+)=(True|False|\d+)(?= |$)")
ADDRESS = re.compile(r" name=(\S+)")


@cache
def rows_of(name):
    rows = import_capture(FOLDER / f"{name}.pcapng").rows
    return tuple(row for row in rows if row.protocol != "amqp-0-9-1")


def note_of(name):
    return (FOLDER / f"{name}.note.txt").read_text()


def listing(name):
    """By connection: (peer, kind, the fields that are numbers or flags, name of the link)."""
    found = {}
    for line in (FOLDER / f"{name}.frames.txt").read_text().splitlines():
        connection, arrow, kind, rest = LINE.match(line.strip()).groups()
        fields = {key: ast.literal_eval(value) for key, value in FIELD.findall(rest)}
        link = ADDRESS.search(rest) if kind == "attach" else None
        peer = "client" if arrow == "->" else "broker"
        found.setdefault(connection, []).append((peer, kind, fields, link and link[1]))
    return found


class Reckoning:
    """One connection of the listing: a session, and a link over which the broker sends.

    Frames are told one by one; afterwards `link` and `session` are what the sender's end knows,
    as far as the listing tells.
    """

    def __init__(self):
        self.name = None
        self.start = None  # initial-delivery-count
        self.count = self.limit = 0  # from the start on, without wrapping
        self.available = None
        self.drain = False
        self.unsettled = set()
        self.first_id = None
        self.sent = 0
        self.heard = self.window = 0  # of the client's last word
        self.own = {}
        self.told = True  # the listing has all of the client's last word

    def take(self, peer, kind, fields, name):
        match peer, kind:
            case "client", "begin":
                self.window = fields["incoming-window"]
                self.own["next_incoming_id"] = fields["next-outgoing-id"]
                self.own["remote_outgoing_window"] = fields["outgoing-window"]
            case "broker", "begin":
                self.first_id = fields["next-outgoing-id"]
                self.own["incoming_window"] = fields["incoming-window"]
                self.own["outgoing_window"] = fields["outgoing-window"]
            case _, "attach":
                self.name = name
                self.start = fields.get("initial-delivery-count", self.start)
            case "client", "flow":
                # link-credit(snd) := delivery-count(rcv) + link-credit(rcv) - delivery-count(snd)
                told = (fields["delivery-count"] - self.start) % WRAP
                self.limit = told + fields["link-credit"]
                self.drain = fields.get("drain", False)
                self.told = "incoming-window" in fields
                if self.told:
                    self.heard = (fields["next-incoming-id"] - self.first_id) % WRAP
                    self.window = fields["incoming-window"]
            case "broker", "flow":
                # The sender moves its count up to the limit when it gives credit back.
                self.count = (fields["delivery-count"] - self.start) % WRAP
                self.available = fields["available"]
                assert self.count + fields["link-credit"] == max(self.limit, self.count)
                assert (fields["next-outgoing-id"] - self.first_id) % WRAP == self.sent
            case "broker", "transfer":
                self.sent += 1
                self.count += 1
                if self.available is not None:
                    self.available = max(0, self.available - 1)
                assert self.count <= self.limit, "the broker sends beyond what was granted"
                if not fields["settled"]:
                    self.unsettled.add(fields["delivery-id"])
            case "client", "disposition":
                last = fields.get("last", fields["first"])
                self.unsettled -= set(range(fields["first"], last + 1))

    @property
    def link(self):
        known = {
            "link_credit": max(0, self.limit - self.count),
            "drain": self.drain,
            "unsettled": len(self.unsettled),
        }
        if self.start is not None:
            known["delivery_count"] = (self.start + self.count) % WRAP
        if self.available is not None:
            known["available"] = self.available
        return known

    @property
    def session(self):
        return {
            **self.own,
            "next_outgoing_id": (self.first_id + self.sent) % WRAP,
            "remote_incoming_window": max(0, self.heard + self.window - self.sent),
        }


def beside(name):
    """Every connection's rows of frames, beside the listing's, which have the same order."""
    logs = list(listing(name).values())
    connections = {}
    for row in rows_of(name):
        if row.event == "observed" and row.kind not in ("protocol-header", "heartbeat"):
            connections.setdefault(row.connection, []).append(row)
    assert len(connections) == len(logs)
    for rows, log in zip(connections.values(), logs, strict=True):
        assert [(row.from_peer, row.kind) for row in rows] == [entry[:2] for entry in log]
        yield from ((row.seq, log[place], log) for place, row in enumerate(rows))


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_folds_to_the_ledgers_of_the_specification_after_every_frame(name):
    """All links and sessions, not the frame's alone: 2.5.6, 2.6.7 and 2.6.12 by the listing."""
    expected = {seq: (entry, id(log)) for seq, entry, log in beside(name)}
    reckonings, places = {}, {}
    folding = Fold()
    compared = 0
    for row in rows_of(name):
        folding.apply(row)
        if row.seq not in expected:
            continue
        entry, connection = expected[row.seq]
        places[connection] = row.connection
        reckonings.setdefault(connection, Reckoning()).take(*entry)
        state = folding.state()
        for key, reckoning in reckonings.items():
            if reckoning.name is None:
                continue
            where = f"{name} row {row.seq}, link {reckoning.name}"
            link = Scope("link", places[key], 1, reckoning.name, "broker", 1)
            assert state.ledgers["wire", link] == reckoning.link, where
            session = Scope("session", places[key], 1, link_sender="broker")
            if reckoning.told:
                assert state.ledgers["wire", session] == reckoning.session, where
            compared += 1
    assert compared > 20


def batches(name, connection):
    """How many transfers came after each of the client's flows, and before the next."""
    counts = []
    for row in rows_of(name):
        if row.connection != connection:
            continue
        if row.kind == "flow" and row.from_peer == "client":
            counts.append(0)
        elif row.kind == "transfer":
            counts[-1] += 1
    return counts


def noted(name, about=""):
    """The flows that a note quotes, as dictionaries."""
    lines = [line for line in note_of(name).splitlines() if about in line]
    found = [each for line in lines for each in re.findall(r"\{'next-incoming-id.*?\}+", line)]
    return [ast.literal_eval(each) for each in found]


def credit_at(name, wanted):
    """link-credit folded after the flows of the broker that have these fields."""
    folding, found = Fold(), []
    for row in rows_of(name):
        folding.apply(row)
        if row.kind != "flow" or row.from_peer != "broker":
            continue
        names = {key.replace("-", "_"): value for key, value in wanted.items()}
        names.pop("properties", None)
        if all(row.frame.get(key) == value for key, value in names.items()):
            link = Scope("link", row.connection, 1, row.link, "broker", row.attach_no)
            found.append(folding.state().ledgers["wire", link]["link_credit"])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_flow_that_a_note_quotes_is_there_and_folds_to_the_credit_it_tells(name):
    """The note was written by the capture's client: drain leaves 0, echo tells what is left."""
    quoted = noted(name)
    assert quoted
    for flow in quoted:
        found = credit_at(name, flow)
        assert found
        assert set(found) == {flow["link-credit"]}


@pytest.mark.parametrize("name", NAMES[:2])
def test_consumer_credit_brings_the_transfers_that_the_note_counts(name):
    """10 for 10; nothing for dispositions; 4 for twice 4; 4 for 6 from two behind; the last 7."""
    told = [int(count) for count in re.findall(r"transferx(\d+)", note_of(name))]
    assert told == [10, 4, 4, 7]
    assert batches(name, "c1") == [told[0], 0, *told[1:]]
    assert sum(told) == int(re.search(r"queue of (\d+) messages", note_of(name))[1])


@pytest.mark.parametrize("name", NAMES[2:4])
def test_drain_brings_what_is_ready_and_takes_the_rest_of_the_credit_back(name):
    """Figure 2.44 on an empty queue; then 3 of 10; then credit 2 without drain keeps 1."""
    connections = [rows[0].connection for rows in by_connection(name)]
    assert len(connections) == 2
    (told,) = set(re.findall(r"transferx(\d+)", note_of(name)))
    for rows in by_connection(name):
        assert batches(name, rows[0].connection) == [0, 0, int(told), 1]
        last = [row for row in rows if row.link][-1].ledger
        assert (last["link_credit"], last["drain"]) == (1, False)


def by_connection(name):
    """Rows of each connection that has a link."""
    found = {}
    for row in rows_of(name):
        found.setdefault(row.connection, []).append(row)
    return [rows for rows in found.values() if any(row.link for row in rows)]


def test_a_hand_over_keeps_the_order_and_repeats_what_was_not_settled_alone():
    """A settles and leaves: B goes on after it. B leaves 2 unsettled: C gets these, then on."""
    name = "rmq43_h_sac_handover"
    told = {}
    for line in note_of(name).splitlines():
        bodies = re.search(r"\[(b'\d+'(?:, b'\d+')*)\]", line)
        if bodies:
            who = re.findall(r"\b([ABC])\b", line[: bodies.start()])[-1]
            told[who] = [int(number) for number in re.findall(r"b'(\d+)'", bodies[1])]
    got = {}
    for row in rows_of(name):
        if row.kind == "transfer":
            got.setdefault(row.link, []).append(int(re.search(rb"(\d+)$", row.raw)[1]))
    assert got == told
    assert got["A"] + got["B"] == list(range(10))
    links = {rows[0].connection: rows for rows in by_connection(name)}
    unsettled = {
        row.link: row.ledger["unsettled"]
        for rows in links.values()
        for row in rows
        if row.kind == "detach" and row.from_peer == "client"
    }
    assert unsettled == {"A": 0, "B": 2}
    assert got["C"][:2] == got["B"][-2:]
    assert got["C"] == list(range(got["C"][0], got["C"][0] + 10))


def test_a_waiting_single_active_consumer_has_its_credit_and_hears_that_nothing_is_available():
    """B waits with credit 5 and available 0; when A has gone it is 25 and B's 5 come at once."""
    rows = [row for row in rows_of("rmq43_h_sac_handover") if row.link == "B"]
    heard = [
        (row.ledger["link_credit"], row.ledger["available"])
        for row in rows
        if row.kind == "flow" and row.from_peer == "broker"
    ]
    quoted = [
        (flow["link-credit"], flow["available"])
        for about in ("- B credit", "after A detached")
        for flow in noted("rmq43_h_sac_handover", about)
    ]
    assert heard == quoted == [(5, 0), (5, 25)]
