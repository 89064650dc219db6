"""Proton's frame log: what a real engine prints comes back as the frames that it sent."""

import contextlib
import os
import re
import subprocess
import sys
import textwrap

import pytest

from workbench.capture.importer import CaptureError, import_capture
from workbench.capture.proton_log import NotationError, parse_composite
from workbench.cli.looking import look

POINTER = "[0x55bc23e79ca0]: AMQP:FRAME:0 "

SESSION = textwrap.dedent(
    r"""
    import sys, uuid
    from proton import *

    def pump(a, b):
        moved = True
        while moved:
            moved = False
            for x, y in ((a, b), (b, a)):
                n = min(max(x.pending(), 0), max(y.capacity(), 0))
                if n:
                    y.push(x.peek(n))
                    x.pop(n)
                    moved = True

    client, server = Connection(), Connection()
    client.container, server.container = "client", "server"
    client.properties = {
        symbol("u"): uuid.UUID(int=5), symbol("b"): b"\x00a\xff\"", symbol("neg"): -5,
        symbol("big"): ulong(2**64 - 1), symbol("f"): 1.5, symbol("n"): None,
        symbol("inf"): float("inf"),
        symbol("l"): [1, "x", [True]], symbol("m"): {"k": symbol("v")},
        symbol("s"): "\u00e9\n\"q\", a=1]",
        symbol("d"): Described(symbol("foo:bar"), [1, 2]),
        symbol("a"): Array(UNDESCRIBED, Data.INT, 1, 2),
    }
    client.offered_capabilities = [symbol("A-1"), symbol("b c")]
    ct, st = Transport(Transport.CLIENT), Transport(Transport.SERVER)
    ct.sasl().allowed_mechs("PLAIN ANONYMOUS")
    st.sasl().allowed_mechs("ANONYMOUS")
    (ct if sys.argv[1] == "client" else st).trace(Transport.TRACE_FRM)
    ct.bind(client)
    st.bind(server)
    client.open()
    server.open()
    session = client.session()
    session.open()
    pump(ct, st)
    server.session_head(0).open()
    receiver = session.receiver('r,"1]')
    receiver.source.address = "/queues/<img src=x onerror=alert(1)>"
    receiver.open()
    receiver.flow(3)
    pump(ct, st)
    sender = server.link_head(0)
    sender.source.copy(sender.remote_source)
    sender.open()
    pump(ct, st)
    for number in range(2):
        sender.delivery("t%d" % number)
        sender.send(b"\x00\x53\x75\xa0\x03a\"b")
        sender.advance()
    pump(ct, st)
    delivery = receiver.current
    delivery.local.condition = Condition("amqp:not-found", "why", {symbol("a"): 1})
    delivery.update(Delivery.REJECTED)
    delivery.settle()
    pump(ct, st)
    receiver.drain(0)
    pump(ct, st)
    sender.drained()
    pump(ct, st)
    sender.condition = Condition("amqp:internal-error", "gone, (away)")
    sender.close()
    pump(ct, st)
    client.close()
    server.close()
    pump(ct, st)
    """
)


@pytest.fixture(scope="module", params=["client", "server"])
def log(request, tmp_path_factory):
    """The log that a real engine writes of one session, seen from either end."""
    pytest.importorskip("proton", reason="python-qpid-proton is not installed")
    done = subprocess.run(
        [sys.executable, "-c", SESSION, request.param],
        check=True, capture_output=True, env=os.environ | {"PN_TRACE_FRM": "0"},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("logs") / f"{request.param}.log"
    path.write_bytes(done.stdout + done.stderr)
    return path


def test_a_log_is_said_to_have_no_times_beside_what_is_told_of_them(log):
    """Its rows are counted in microseconds: a wait of three took nobody knows how long."""
    words = "it has no times: a microsecond stands for a frame"
    first, *others = look(log).about
    assert first.endswith(f"; {words}")
    assert words in import_capture(log).report.text()
    assert not any(words in line for line in others)


def test_waits_of_a_log_are_told_in_frames(log):
    """Neither microseconds nor seconds stand in what is told of its links."""
    looked = look(log)
    told = "\n".join(looked.text())
    above = told.split("The worst frame")[0]
    assert re.search(r"\d frames? on c1/1 ", above)
    assert "from row " in above
    assert not re.search(r"\d (µs|ms|s|min)\b", above)
    assert not re.search(r"\d (µs|ms|s|min)\b", looked._repr_html_().split("What was read")[0])


def test_a_real_log_gives_every_frame_with_kind_and_direction(log):
    """Both ends' logs tell the same frames; who is the client is seen from SASL or header."""
    result = import_capture(log)
    rows = result.rows
    sent = {peer: [r.kind for r in rows if r.from_peer == peer] for peer in ("client", "broker")}
    assert sent["client"] == [
        "protocol-header", "sasl-init", "protocol-header", "open", "begin", "attach", "flow",
        "disposition", "flow", "close",
    ]  # fmt: skip
    assert sent["broker"] == [
        "protocol-header", "sasl-mechanisms", "sasl-outcome", "protocol-header", "open", "begin",
        "attach", "transfer", "transfer", "flow", "detach", "close",
    ]  # fmt: skip
    assert "the log does not carry them" in result.report.text()
    assert result.report.connections[0].problems == []


def test_fields_come_back_as_proton_printed_them(log):
    """Numbers, text with quotes and brackets, nested values, delivery states and errors."""
    rows = {(row.from_peer, row.kind): row for row in import_capture(log).rows}
    opened = rows["client", "open"]
    assert opened.frame["container_id"] == "client"
    properties = opened.extra["properties"]
    assert properties["b"] == {"binary": b'\x00a\xff"'.hex()}
    assert (properties["neg"], properties["big"], properties["f"]) == (-5, 2**64 - 1, 1.5)
    assert properties["l"] == [1, "x", [True]]
    assert (properties["m"], properties["s"], properties["a"]) == (
        {"k": "v"},
        'é\n"q", a=1]',
        [1, 2],
    )
    assert properties["d"] == {"descriptor": "foo:bar", "value": [1, 2]}
    assert opened.extra["offered_capabilities"] == ["A-1", "b c"]
    attach = rows["client", "attach"]
    assert (attach.link, attach.frame["role"]) == ('r,"1]', "receiver")
    assert attach.extra["source"]["address"] == "/queues/<img src=x onerror=alert(1)>"
    state = rows["client", "disposition"].extra["state"]
    assert state["type"] == "rejected"
    assert state["error"]["condition"] == "amqp:not-found"
    assert rows["broker", "detach"].extra["error"]["description"] == "gone, (away)"
    transfer = rows["broker", "transfer"]
    assert (transfer.frame["delivery_tag"], transfer.body_bytes) == (b"t1", 8)


def test_credit_is_reckoned_from_the_log_and_what_it_lacks_is_null(log):
    """Credit 3, two messages, then drain; no octets, no sizes, no packet times."""
    rows = import_capture(log).rows
    links = [row for row in rows if row.kind in ("transfer", "flow") and row.link]
    counters = [row.ledger.get("link_credit") for row in links]
    assert counters[-1] == 0
    assert {2, 1} <= set(counters)
    assert all(row.raw is None and row.frame_bytes is None for row in rows)
    assert all(row.t_raw_us is None for row in rows)
    assert [row.t_us for row in rows] == list(range(len(rows)))


def test_secrets_of_a_log_are_redacted(log, tmp_path):
    """The initial response becomes zeros of the same length."""
    plain = import_capture(log).rows
    rows = import_capture(log, redact=True).rows
    secret = next(row.frame["initial_response"] for row in plain if row.kind == "sasl-init")
    assert secret
    hidden = next(row.frame["initial_response"] for row in rows if row.kind == "sasl-init")
    assert hidden == bytes(len(secret))


def test_what_is_no_frame_is_not_quoted_where_secrets_are_redacted(tmp_path):
    """Neither where it is told, nor anywhere else."""
    bad = '-> @sasl-init(65) [mechanism=:PLAIN, initial-response="guest-secret"]'
    path = write(tmp_path / "bad.log", BEGIN, POINTER + bad, BEGIN)
    assert "guest-secret" in import_capture(path).report.text()
    told = import_capture(path, redact=True).report
    assert "line 2: what it says is no frame" in told.text()
    assert "guest-secret" not in told.text()


@pytest.mark.parametrize("size", ["9" * 25, "9" * 5_000])
def test_a_payload_of_a_size_that_is_no_size_costs_nothing_else(tmp_path, size):
    line = POINTER + f'-> @transfer(20) [handle=0x0, delivery-id=0x0] ({size}) "x"'
    path = write(tmp_path / "size.log", BEGIN, line)
    assert [row.body_bytes for row in import_capture(path).rows] == [None, 0]


def test_other_output_between_the_lines_is_passed_over(log, tmp_path):
    """A log is mostly found in the middle of a program's own output."""
    mixed = tmp_path / "mixed.log"
    lines = log.read_bytes().splitlines()
    mixed.write_bytes(b"\n".join(part for line in lines for part in (b"hello: -> @world", line)))
    assert len(import_capture(mixed).rows) == len(import_capture(log).rows)


def write(path, *lines: str):
    path.write_text("\n".join(lines) + "\n")
    return path


BEGIN = POINTER + "-> @begin(17) [next-outgoing-id=0x0, incoming-window=0x9, outgoing-window=0x9]"


def test_a_line_that_proton_cut_keeps_the_fields_before_the_cut(tmp_path):
    """The log cuts at 1,024 characters: a payload costs nothing, a field behind the cut is null."""
    path = write(
        tmp_path / "cut.log",
        POINTER + "-> AMQP",
        POINTER + '-> @open(16) [container-id="c", hostname="hhhhhhhh ... (truncated)',
        BEGIN,
        POINTER
        + "-> @transfer(20) [handle=0x0, delivery-id=0x0, more=true] (32743) zz ... (truncated)",
    )
    result = import_capture(path)
    opened, transfer = result.rows[1], result.rows[3]
    assert opened.frame == {"channel": 0, "container_id": "c"}
    assert (transfer.frame["more"], transfer.body_bytes) == (True, 32743)
    assert result.report.connections[0].problems == [
        "line 2: Proton cut it at 1,024 characters; fields behind the cut are null"
    ]


def test_a_line_without_its_mandatory_fields_is_named_and_left_out(tmp_path):
    """What cannot be a frame is told with its line number."""
    path = write(tmp_path / "bad.log", BEGIN, POINTER + "<- @flow(19) [handle=0x0]", BEGIN)
    result = import_capture(path)
    assert len(result.rows) == 2
    assert "line 2" in result.report.connections[0].problems[0]
    assert "incoming-window is mandatory" in result.report.connections[0].problems[0]


@pytest.mark.parametrize("number", ["1" * 5_000, "-" + "1" * 5_000, "0x" + "f" * 5_000])
def test_a_number_of_thousands_of_digits_costs_its_line_only(tmp_path, number):
    """Python itself turns none of more than 4,300 digits into a number or back into text."""
    fields = f'container-id="c", properties={{:n={number}}}'
    path = tmp_path / "long.log"
    path.write_text(f'{POINTER}-> @open(16) [{fields}]\n{POINTER}-> @open(16) [container-id="c"]\n')
    result = import_capture(path)
    assert [row.kind for row in result.rows] == ["open"]
    (problem,) = result.report.connections[0].problems
    assert problem == f"line 1: a number of {len(number):,} characters is no number of AMQP"


@pytest.mark.parametrize("channel", ["99999999999", "1" * 5_000])
def test_a_channel_that_no_column_takes_makes_a_line_of_somebody_else(tmp_path, channel):
    """It ended the import: AMQP has channels up to 65,535."""
    other = BEGIN.replace("FRAME:0", f"FRAME:{channel}")
    assert channel in other
    result = import_capture(write(tmp_path / "odd.log", BEGIN, other))
    assert [row.frame["channel"] for row in result.rows] == [0]


@pytest.mark.parametrize(
    "said",
    [
        "@begin(17) [next-outgoing-id=true, incoming-window=0x9, outgoing-window=0x9]",
        "@attach(18) [name=@accepted(36) [], handle=0x0, role=true]",
        "@begin(17) [next-outgoing-id=-1, incoming-window=0x9, outgoing-window=0x9]",
    ],
)
def test_a_value_of_a_type_that_its_field_has_not_costs_its_line_at_most(tmp_path, said):
    """It ended the import: no column took it."""
    result = import_capture(write(tmp_path / "odd.log", BEGIN, POINTER + "-> " + said, BEGIN))
    assert len(result.rows) + len(result.report.connections[0].problems) == 3


def test_lines_of_older_proton_and_several_connections_are_read(tmp_path):
    """Older versions print no layer; each address in memory is a connection."""
    path = write(
        tmp_path / "old.log",
        "[0x1]:  -> AMQP",
        '[0x1]:0 -> @open(16) [container-id="a"]',
        "[0x2]:  <- AMQP",
        '[0x2]:0 <- @open(16) [container-id="b"]',
        "[0x2]:0 <- (EMPTY FRAME)",
        "[0x1]:0 -> @close(24) []",
        "[0x1]:  -> AMQP",
    )
    rows = import_capture(path).rows
    assert [(row.connection, row.from_peer, row.kind) for row in rows] == [
        ("c1", "client", "protocol-header"),
        ("c1", "client", "open"),
        ("c2", "client", "protocol-header"),
        ("c2", "client", "open"),
        ("c2", "client", "heartbeat"),
        ("c1", "client", "close"),
        ("c3", "client", "protocol-header"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "@flow(19) [a=" + "[" * 200,
        "@flow(19) [a=" + "@x(1) [b=" * 200,
        "@flow(19) [=1]",
        "flow",
        "@flow(19) [a=1 b=2]" + " " * 100,
    ],
)
def test_text_that_is_no_performative_is_refused(text):
    """Depth is bounded and nonsense is named."""
    with contextlib.suppress(NotationError):
        assert parse_composite(text)[3], "read as whole"


def test_a_text_without_frames_is_no_capture(tmp_path):
    """Any other text is refused like any other file."""
    with pytest.raises(CaptureError, match="not a capture"):
        import_capture(write(tmp_path / "text.log", "nothing", "to -> see @here"))


BEGUN = """\
[0x1]:  -> AMQP
[0x1]:  <- AMQP
[0x1]:0 -> @open(16) [container-id="c", channel-max=32767]
[0x1]:0 <- @open(16) [container-id="b", offered-capabilities=@PN_SYMBOL[:"ANONYMOUS-RELAY", :PAIR]]
[0x1]:0 -> @begin(17) [next-outgoing-id=0, incoming-window=100, outgoing-window=100]
[0x1]:0 <- @begin(17) [remote-channel=0, next-outgoing-id=0, incoming-window=9, outgoing-window=9]
[0x1]:0 -> @attach(18) [name="r", handle=0, role=true]
[0x1]:0 <- @attach(18) [name="r", handle=0, role=false, initial-delivery-count=0]
[0x1]:0 -> @flow(19) [incoming-window=9, next-outgoing-id=0, outgoing-window=9, handle=0, \
delivery-count=0, link-credit=10]
"""
"""How an older version prints the beginning of a connection."""


def test_arrays_and_quotes_of_older_versions_are_read(tmp_path):
    """They name an array's type as C does, and print a quote in a delivery-tag as it is."""
    log = tmp_path / "old.log"
    tag = r'b"\x00\x00\x00""'
    log.write_text(
        f"{BEGUN}[0x1]:0 <- @transfer(20) [handle=0, delivery-id=0, delivery-tag={tag},"
        ' message-format=0] (5) "hello"\n'
    )
    found = import_capture(log)
    assert [one.problems for one in found.report.captures[0].connections] == [[]]
    opened = next(row for row in found.rows if row.kind == "open" and row.from_peer == "broker")
    assert opened.extra["offered_capabilities"] == ["ANONYMOUS-RELAY", "PAIR"]
    assert found.rows[-1].frame["delivery_tag"] == b'\0\0\0"'
    assert found.rows[-1].ledger["link_credit"] == 9


def test_a_log_may_begin_with_much_else(tmp_path):
    """What a program says before it connects is no reason to take its log for none."""
    log = tmp_path / "app.log"
    log.write_text("starting\n" * 9_000 + BEGUN)
    assert len(import_capture(log).rows) == BEGUN.count("[0x1]")
