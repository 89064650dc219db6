"""The trace of a live broker: it fills while clients talk, and survives a killed process."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import TIMEOUT_S, until
from workbench.net.recording import PERIOD_S, Spool
from workbench.net.serve import serve
from workbench.trace import files
from workbench.views.scene import scene

proton = pytest.importorskip("proton", reason="needs python-qpid-proton")

from proton import Message  # noqa: E402  (only where the library is)
from proton.utils import BlockingConnection  # noqa: E402

REPO = Path(__file__).resolve().parents[2]


def talk(broker, messages=5, **options):
    """Send some messages and take them again."""
    options = {"allowed_mechs": "ANONYMOUS"} | options
    connection = BlockingConnection(broker.url, timeout=TIMEOUT_S, **options)
    sender = connection.create_sender("q")
    for number in range(messages):
        sender.send(Message(body=number))
    receiver = connection.create_receiver("q", credit=messages)
    for _ in range(messages):
        receiver.receive(timeout=TIMEOUT_S)
        receiver.accept()
    connection.close()


def test_the_trace_fills_while_the_broker_runs_and_opens_on_the_stage():
    """Rows are numbered without gaps, and both ends of every frame are there."""
    with serve() as broker:
        talk(broker)
        rows = broker.rows()
        assert broker.running
        doc = scene(rows)
    assert [row.seq for row in rows] == list(range(len(rows)))
    assert all(one.t_us <= two.t_us for one, two in itertools.pairwise(rows))
    sent = {row.frame_id for row in rows if row.event == "sent"}
    assert sent == {row.frame_id for row in rows if row.event == "received"}
    assert len(doc["branches"][0]["steps"]) == len(rows)


def test_a_second_server_on_a_folder_leaves_what_the_first_has_written(tmp_path):
    """It is another run, whose rows stand beside those of the first."""
    runs = []
    for messages in (9, 2):
        with serve(trace=tmp_path, queues=["q"]) as broker:
            talk(broker, messages)
        runs.append({row.run for row in files.read(tmp_path)})
    assert runs == [{"live"}, {"live", "live-2"}]
    counts = [sum(row.run == run for row in files.read(tmp_path)) for run in ("live", "live-2")]
    assert counts[0] > counts[1] > 0


def test_a_client_without_counters_is_shadowed():
    """Proton shows no counters, so an observer works them out, and the rows say so."""
    with serve() as broker:
        talk(broker, messages=3)
        rows = broker.rows()
    own = [row for row in rows if row.vantage == "client:c1" and row.ledger]
    assert {row.ledger_source for row in own} == {"shadow"}
    transfers = [row for row in own if row.kind == "transfer" and row.event == "sent"]
    assert [row.ledger["delivery_count"] for row in transfers] == [1, 2, 3]
    assert {row.ledger_source for row in rows if row.vantage == "broker" and row.ledger} == {"own"}


def test_rows_carry_the_octets_that_were_on_the_wire():
    """A peer's own encodings are kept: Proton writes others than ours."""
    with serve() as broker:
        talk(broker)
        rows = broker.rows()
    frames = [row for row in rows if row.from_peer == "client" and row.event == "sent"]
    assert all(row.frame_bytes == len(row.raw) for row in frames)
    (begin,) = [row for row in frames if row.kind == "begin"]
    assert begin.raw[:4] == len(begin.raw).to_bytes(4, "big")


def test_a_password_is_not_recorded():
    """What a client answers in SASL is zeros in the trace."""
    with serve(users={"ann": "very-secret"}) as broker:
        talk(broker, allowed_mechs="PLAIN", user="ann", password="very-secret")
        rows = broker.rows()
    inits = [row for row in rows if row.kind == "sasl-init"]
    assert inits
    assert not any(b"very-secret" in (row.raw or b"") for row in rows)
    assert all(set(row.frame["initial_response"]) == {0} for row in inits)


def test_the_folder_holds_the_whole_trace(tmp_path):
    """After `stop` the folder reads as the trace that was in memory."""
    with serve(trace=tmp_path, run="live-1") as broker:
        talk(broker)
    rows = files.read(tmp_path)
    assert [row.seq for row in rows] == list(range(len(rows)))
    assert len(rows) == len(broker.rows())
    assert [row.raw for row in rows] == [row.raw for row in broker.rows()]


def test_a_long_trace_rolls_over_into_more_files(tmp_path):
    """A file that is full is left alone; in order of their names the files are the trace."""
    with serve() as broker:
        talk(broker, messages=20)
    rows = broker.rows()
    spool = Spool(tmp_path, "t", files.to_table, files.write_tables, period_s=0.01, file_rows=50)
    for first in range(0, len(rows), 50):
        for row in rows[first : first + 50]:
            spool.put(row)
        until(lambda: spool.written == min(first + 50, len(rows)))  # noqa: B023 (called at once)
    spool.close()
    # A write may come in the middle of the fifty; then a file has up to forty-nine more.
    assert 1 < len(list(tmp_path.glob("t-*.parquet"))) <= -(-len(rows) // 50)
    assert [row.seq for row in files.read(tmp_path)] == [row.seq for row in rows]


def test_a_disk_that_takes_nothing_is_told_and_loses_nothing(tmp_path):
    """While a write fails the rows wait; when it works again they are written, in order."""
    full = True
    packed, written = [], []

    def pack(rows):
        packed.append(rows)
        return rows

    def write(_path, tables):
        if full:
            raise OSError("no space left on device")
        written[:] = itertools.chain(*tables)

    spool = Spool(tmp_path, "t", pack, write, period_s=0.01)
    spool.put(1)
    until(lambda: spool.problem is not None)
    assert "no space" in str(spool.problem)
    assert [spool.news(), spool.news()] == [["rows wait in memory: no space left on device"], []]
    spool.put(2)
    full = False
    until(lambda: spool.written == 2)
    assert [spool.news(), spool.news()] == [[f"{tmp_path}: rows are written again"], []]
    spool.put(3)
    spool.close()
    assert written == [1, 2, 3]
    assert packed[-1] == [3], "what is in the file already was packed again"
    assert spool.problem is None


TALKS = """
import sys
from workbench.net.serve import serve
from proton import Message
from proton.utils import BlockingConnection
broker = serve(trace=sys.argv[1])
connection = BlockingConnection(broker.url, timeout=120, allowed_mechs="ANONYMOUS")
sender = connection.create_sender("q")
while True:
    sender.send(Message(body="x"))
"""


def test_a_killed_process_keeps_what_it_had_written_and_it_writes_more_than_once_a_second(tmp_path):
    """SIGKILL in mid-traffic: every file is whole, and no row is missing before the last one."""
    assert PERIOD_S < 0.5
    process = subprocess.Popen([sys.executable, "-c", TALKS, str(tmp_path)], cwd=REPO)
    try:
        written = [0]
        for _ in range(3):
            until(lambda: any(tmp_path.glob("*.parquet")))
            until(lambda: len(files.read(tmp_path)) > written[-1])
            written.append(len(files.read(tmp_path)))
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
    rows = files.read(tmp_path)
    assert [row.seq for row in rows] == list(range(len(rows)))
    assert len(rows) >= written[-1]
