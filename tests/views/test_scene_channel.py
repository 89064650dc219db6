"""The stage's picture of AMQP 0-9-1, made of captures of RabbitMQ 4.3.6."""

import jsonschema
import pytest

from tests.amqp010.strategies import every_frame
from tests.amqp091.corpus import corpus
from tests.amqp091.streams import FOLDER
from workbench.amqp010.frame import encode_item as encode_item_010
from workbench.amqp091.frame import encode_item
from workbench.capture.importer import import_capture
from workbench.scenarios import run
from workbench.trace.cut import cut_rows
from workbench.trace.octets import places
from workbench.views.scene import resolved, scene, schema


def made(name):
    rows = import_capture(FOLDER / f"rmq43_{name}.pcapng").rows
    doc = scene(rows[:200], octets=False)
    jsonschema.validate(doc, schema())
    return doc, list(resolved(doc))


def test_a_prefetch_is_a_limit_on_a_line_of_deliveries():
    """It stands still while three are unacknowledged, blocks the broker, and moves by an ack."""
    doc, states = made("q1_amqp091_prefetch_and_ack")
    assert [node["name"] for node in doc["nodes"]] == ["Broker", "Client"]
    line, other = (one["id"] for one in doc["lines"])
    assert (line, other) == ("consumer c1/1/c", "consumer c1/2/q")
    steps = doc["branches"][0]["steps"]
    told = [
        (step["sentence"].split(" ")[2], *state["lines"][line]["ends"]["broker"])
        for step, state in zip(steps[13:31], states[13:31], strict=True)
        if "body" not in step["sentence"]
    ]
    assert told == [
        ("delivers", 1, 3), ("delivers", 2, 3), ("delivers", 3, 3), ("acknowledges", 3, 4),
        ("delivers", 4, 4), ("acknowledges", 4, 5), ("delivers", 5, 5), ("acknowledges", 5, 7),
    ]  # fmt: skip
    pills = [state["nodes"]["broker"]["blocked"] for state in states[13:23]]
    assert pills == [None] * 6 + ["blocked: prefetch is full (c)"] * 3 + [None]
    assert states[21]["counters"]["channel c1/1 unacknowledged"] == [3, None]
    assert "Consumer c is held" in steps[21]["in_words"]
    deliveries = [frame for frame in doc["branches"][0]["frames"] if "cell" in frame]
    assert deliveries[0]["cell"] == {"line": line, "at": 0}
    assert deliveries[0]["short"] == "delivery 1"


def ends_of(played, *events):
    """What the lines of a run show at the broker after these rows, and what is said to hold it."""
    doc = scene(played)
    lines = sorted(one["id"] for one in doc["lines"])
    for row, state in zip(played.rows, resolved(doc), strict=True):
        if row.vantage == "broker" and (row.event, row.kind) in events:
            ends = [state["lines"][line].get("ends", {}).get("broker") for line in lines]
            yield ends, state["nodes"]["broker"]["blocked"]


def test_a_limit_that_consumers_share_moves_the_lines_of_all():
    """What one of them is given, and what one of them gives back, is room of the other too."""
    played = run("sharing", "rmq4.0", {"messages": 5, "prefetch": 3, "shared": True})
    taken = [("sent", "basic.deliver"), ("received", "basic.nack")]
    assert list(ends_of(played, *taken)) == [
        ([[1, 3], [0, 2]], None),
        ([[1, 2], [1, 2]], None),
        ([[2, 2], [1, 1]], "blocked: prefetch is full"),
    ]
    cancelled = played.then("cancel").then("give_back")
    assert list(ends_of(cancelled, *taken))[3:] == [
        # The first gets no more, and what it gives back is room of the other.
        ([[2, 2], [1, 2]], None),
        ([[2, 2], [1, 3]], None),
        ([[2, 2], [2, 3]], None),
        ([[2, 2], [3, 3]], "blocked: prefetch is full (second)"),
    ]


@pytest.mark.parametrize(
    ("preset", "shared", "together"),
    [
        ("rmq2.0", False, True),
        ("rmq4.0", False, False),
        ("rmq4.0", True, True),
        ("rmq4.3", True, False),
    ],
)
def test_whether_a_limit_is_shared_is_the_brokers_reading(preset, shared, together):
    """Before 3.3.0 each limit was the channel's; since 4.3 none is."""
    played = run("sharing", preset, {"messages": 9, "prefetch": 3, "shared": shared})
    ends = [ends for ends, _ in ends_of(played, ("sent", "basic.deliver"))]
    assert ends[0] == [[1, 3], [0, 2 if together else 3]]
    assert ends[-1] == ([[2, 2], [1, 1]] if together else [[3, 3], [3, 3]])


def test_who_publishes_without_a_consumer_stands_left():
    """There is no line: 0-9-1 has no credit for a publisher."""
    doc, states = made("p1_amqp091_publish_without_confirms")
    assert [node["role"] for node in doc["nodes"]] == ["sender", "receiver"]
    assert doc["lines"] == []
    assert states[-1]["nodes"]["client:c1"]["facts"] == ["64 published"]
    assert "no credit for publishers" in doc["idea"]


def test_a_slice_counts_no_deliveries_for_it_has_not_seen_those_before():
    """From the first row on they are counted."""
    rows = import_capture(FOLDER / "rmq43_q1_amqp091_prefetch_and_ack.pcapng").rows
    facts = [
        list(resolved(scene(cut_rows(rows, 60, first=first), octets=False)))[-1]["nodes"][
            "client:c1"
        ]["facts"]
        for first in (0, 50)
    ]
    assert facts == [["28 delivered"], ["0 of 3 unacknowledged"]]


def test_a_slice_tells_how_full_a_prefetch_is_whose_consumer_began_before_it():
    """No line can be drawn; the broker stands left all the same, and its limit is told in words."""
    rows = import_capture(FOLDER / "rmq43_q1_amqp091_prefetch_and_ack.pcapng").rows
    doc = scene(cut_rows(rows[:26], 25, first=18), octets=False)
    jsonschema.validate(doc, schema())
    assert doc["lines"] == []
    assert [(node["name"], node["role"]) for node in doc["nodes"]] == [
        ("Broker", "sender"), ("Client", "receiver"),
    ]  # fmt: skip
    assert doc["idea"].startswith("A prefetch is a limit on deliveries")
    facts = [state["nodes"]["client:c1"]["facts"] for state in resolved(doc)]
    assert facts[-8:] == [[f"{n} of 3 unacknowledged"] for n in (2, 3, 3, 3, 2, 3, 3, 3)]


def test_of_two_channels_the_fuller_one_is_told():
    """Their sum would hide that one is full."""
    rows = import_capture(FOLDER / "rmq43_q1_amqp091_prefetch_and_ack.pcapng").rows
    told = set()
    for state in resolved(scene(cut_rows(rows, 80, first=60), octets=False)):
        one, other = (state["counters"][f"channel c1/{n} unacknowledged"][0] for n in (1, 2))
        told.add((one, other or 0))
        facts = state["nodes"]["client:c1"]["facts"]
        assert facts == [f"{max(one, other or 0)} of 3 unacknowledged"]
    assert {(2, 0), (0, 3)} <= told


def test_of_many_clients_that_of_the_opened_row_is_drawn_with_what_holds_it():
    """Beside it those whose consumers have lines; how many are left out is said."""
    rows = import_capture(FOLDER / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    seq = next(row.seq for row in rows if row.kind == "connection.blocked")
    assert rows[seq].connection == "c1"
    for opened, drawn in ((seq, {"c1", "c3", "c4"}), (len(rows) - 1, {"c3", "c4", "c5"})):
        cut = cut_rows(rows, opened)
        assert cut.row.connection in drawn
        doc = scene(cut, octets=False)
        jsonschema.validate(doc, schema())
        assert {link["id"] for link in doc["links"]} == drawn
        assert {line["id"].split(" ")[1].split("/")[0] for line in doc["lines"]} <= drawn
        assert {row["id"].split(" ")[1].split("/")[0] for row in doc["counters"]["rows"]} <= drawn
        assert doc["idea"].endswith("Not drawn: 3 clients.")
    states = list(resolved(scene(cut_rows(rows, seq), octets=False)))
    pills = [state["nodes"]["client:c1"]["blocked"] for state in states[seq - 1 : seq + 1]]
    assert pills == [None, "blocked: alarm"]
    last = next(n for n, row in enumerate(rows) if row.kind == "connection.unblocked")
    assert states[last]["nodes"]["client:c1"]["blocked"] is None


def test_a_slice_knows_what_an_alarm_holds_that_was_told_before_it():
    """Up to the row that tells its end."""
    rows = import_capture(FOLDER / "rmq43_b1_amqp091_memory_alarm.pcapng").rows
    its = [row for row in rows if row.connection == "c1"]
    blocked = next(n for n, row in enumerate(its) if row.kind == "connection.blocked")
    free = max(n for n, row in enumerate(its) if row.kind == "connection.unblocked")
    for after, held in ((its[blocked + 1], "blocked: alarm"), (its[free + 1], None)):
        begun = next(
            iter(resolved(scene(cut_rows(rows, after.seq, first=after.seq), octets=False)))
        )
        assert begun["nodes"]["client:c1"]["blocked"] == held


def test_a_client_that_its_socket_holds_is_blocked_by_tcp_and_its_frames_stand():
    """No frame tells of it before connection.blocked; a slice knows it, too."""
    played = run("emergency_brake", "rmq2.0", {"messages": 30})
    rows, doc = played.rows, scene(played)
    states = list(resolved(doc))
    told = [row.seq for row in rows if row.kind == "tcp" and row.vantage == "client:app"]
    full, free = told[:2]
    pills = [state["nodes"]["client:app"]["blocked"] for state in states[full - 1 : free + 1]]
    assert pills == [None, *["blocked: TCP takes no more"] * (free - full), None]
    words = doc["branches"][0]["steps"][full]["in_words"]
    assert "What the client sends on c1 waits: TCP takes no more octets." in words
    cut = scene(cut_rows(rows, full + 5, first=full + 3, end=free - 1))
    assert {one["nodes"]["client:app"]["blocked"] for one in resolved(cut)} == {pills[1]}

    latency = played.parameters["latency_us"] / 1000
    stopped, goes_on = rows[full].t_us / 1000, rows[free].t_us / 1000
    sent = [one["path"] for one in doc["branches"][0]["frames"]]
    waited = [path for path in sent if stopped - latency < path[0][0] <= stopped]
    assert waited
    for (begun, _), (came, part), (left, there), (ended, whole) in waited:
        assert came == pytest.approx(begun + latency)
        assert (part, there, whole) == (0.86, 0.861, 1.0)
        assert left == pytest.approx(ended) == pytest.approx(goes_on)


@pytest.mark.parametrize(
    ("protocol", "frames", "encode"),
    [("amqp-0-9-1", corpus, encode_item), ("amqp-0-10", every_frame, encode_item_010)],
)
def test_the_fields_of_every_frame_cover_its_octets(protocol, frames, encode):
    """All methods, controls and commands, one behind the other, without a gap."""
    for frame in frames():
        octets = encode(frame)
        found = places(octets, protocol)
        assert [one.start for one in found] == [0, *(one.end for one in found[:-1])]
        assert found[-1].end == len(octets)
        assert not {"payload", "octets"} & {one.path for one in found}
