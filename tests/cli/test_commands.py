"""Every command with good input and with bad: what it prints, what it writes, how it ends."""

import base64
import gzip
import json
import os
import re
import shlex
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.analysis.errors import AnalysisError
from workbench.cli import main
from workbench.trace import files
from workbench.trace.schema import SCHEMA_VERSION

REPO = Path(__file__).resolve().parent.parent.parent
CAPTURE = REPO / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"
OTHER = REPO / "data" / "captures" / "rmq43_c_drain.pcapng"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a run, a capture's trace and a trace of two captures."""
    place = tmp_path_factory.mktemp("made")
    assert (
        main(["run", "credit", "--act", "grant:link_credit=3", "-o", f"{place}/run.parquet"]) == 0
    )
    assert main(["import", str(CAPTURE), "-o", f"{place}/rabbit.parquet"]) == 0
    assert main(["import", str(CAPTURE), str(OTHER), "-o", f"{place}/both.parquet"]) == 0
    return place


def lines(capsys, *argv: str, code: int = 0) -> tuple[list[str], list[str]]:
    """Run a command; give the lines on stdout and on stderr."""
    ended = main(argv)
    said = capsys.readouterr()
    assert ended == code, said.err
    return said.out.splitlines(), said.err.splitlines()


def refused(capsys, *argv: str, code: int, telling: str) -> None:
    """A command must fail with that code and one line that holds the telling words."""
    here = {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")}
    out, err = lines(capsys, *argv, code=code)
    assert out == []
    assert len(err) == 1, err
    assert telling in err[0]
    assert {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")} == here


# -- scenarios ----------------------------------------------------------------------------------


def test_scenarios_tells_parameters_and_acts(capsys):
    """Everything that `run --set` and `--act` take is in the list, with range and default."""
    out, err = lines(capsys, "scenarios")
    told = "\n".join(out)
    assert err == []
    assert out[0].startswith("asking: ")
    assert max(map(len, out)) < 80
    assert "messages [10]: 0 to 100000 messages" in told
    assert "grant(link_credit)" in told


def test_scenarios_for_programs_is_json(capsys):
    """The same as values."""
    out, _ = lines(capsys, "scenarios", "credit", "--format", "json")
    (scenario,) = json.loads("\n".join(out))
    parameters = {parameter["name"]: parameter for parameter in scenario["parameters"]}
    assert parameters["latency_us"]["unit"] == "us"
    assert "manual" in parameters["policy"]["choices"]
    assert {act["name"] for act in scenario["acts"]} >= {"grant", "publish", "acknowledge", "hold"}


# -- run ----------------------------------------------------------------------------------------


def test_run_writes_the_trace_of_a_run(capsys, folder):
    """Parameters and acts are obeyed, and the file is a trace."""
    argv = ["--set", "messages=25", "--act", "grant:link_credit=10", "-o", "t.parquet"]
    out, err = lines(capsys, "run", "credit", *argv)
    assert out == []
    assert err[0].startswith("t.parquet: ")
    rows = files.read(folder / "t.parquet")
    sent = [row for row in rows if row.kind == "transfer" and row.event == "sent"]
    assert len(sent) == 10
    assert rows[-1].seq == len(rows) - 1
    assert err[0].endswith(f" rows, {rows[-1].t_us:,} µs of virtual time")


def test_a_long_run_is_written_as_it_is_made_and_its_counts_are_told(capsys, folder):
    """Under its own preset; model, article and residual, a line for each queue."""
    out, err = lines(capsys, "run", "two_senders", "--set", "run_ms=20", "-o", "t.parquet")
    assert out == []
    rows = files.read(folder / "t.parquet")
    assert err[0].startswith(f"t.parquet: {len(rows):,} rows without octets, ")
    assert err[0].endswith(" µs of virtual time")
    for line, kind in zip(err[1:], ("classic", "quorum"), strict=True):
        taken = sum(row.kind == "transfer" and row.event == "received" and row.link == kind
                    for row in rows)  # fmt: skip
        assert line.startswith(f"{kind}-queue-amqp-10: {taken:,} messages; the article counted")
        assert "residual" in line


def test_the_same_command_gives_the_same_trace(capsys, folder):
    """A run is a pure function of what the command says."""
    for name in ("a.parquet", "b.parquet"):
        lines(capsys, "run", "credit", "--set", "policy=top-up-at-half", "-o", name)
    assert files.read("a.parquet") == files.read("b.parquet")


def test_a_setting_of_rabbitmq_s_is_what_the_broker_grants(capsys, folder):
    """By the name that RabbitMQ's configuration has for it."""
    lines(
        capsys, "run", "race", "--preset", "rmq4.3", "--config", "session_max_per_connection=7",
        "-o", "t.parquet",
    )  # fmt: skip
    opens = [row for row in files.read("t.parquet") if row.kind == "open"]
    assert {row.frame["channel_max"] for row in opens if row.from_peer == "broker"} == {6}


def test_an_act_before_the_first_row_is_at_row_minus_one(capsys, folder):
    """With an equals sign, as the help says, for a word that begins with a dash is an option."""
    lines(capsys, "run", "credit", "--act=-1:hold:direction=c2b", "-o", "t.parquet")
    assert files.read("t.parquet")[0].event == "action"
    assert "--act=-1:NAME" in "".join(lines(capsys, "run", "--help")[0])


def test_an_act_may_name_the_row_after_which_it_happens(capsys, folder):
    """Two acts: the second in the middle of what the first one caused."""
    lines(
        capsys, "run", "credit", "--act", "grant:link_credit=5", "--act", "40:grant:link_credit=0",
        "-o", "t.parquet",
    )  # fmt: skip
    rows = files.read("t.parquet")
    acts = [row.seq for row in rows if row.event == "action"]
    assert acts[-1] in (41, 42, 43)
    assert len(acts) == 2


def test_an_existing_output_is_replaced(capsys, folder):
    """`-o` means that name, whatever was there; only a complete run replaces it."""
    Path("t.parquet").write_text("old")
    lines(capsys, "run", "credit", "-o", "t.parquet")
    assert files.read("t.parquet")
    assert os.listdir() == ["t.parquet"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write_is_told(capsys, folder):
    """The system's own reason, in one line."""
    place = folder / "locked"
    place.mkdir()
    place.chmod(stat.S_IRUSR | stat.S_IXUSR)
    refused(capsys, "run", "credit", "-o", "locked/t.parquet", code=1, telling="ermission")


# -- show ---------------------------------------------------------------------------------------


def test_show_tells_a_trace_in_words(capsys, made):
    """One line a step, and nothing on stderr."""
    out, err = lines(capsys, "show", str(made / "run.parquet"))
    assert err == []
    assert out[0].startswith("run credit-")
    assert len(out) == 1 + len(files.read(made / "run.parquet"))
    assert any("link-credit=3" in line for line in out)


def test_show_at_tells_one_step_in_full(capsys, made):
    """Formula with numbers, clause, fields, both ends' counters and the wire."""
    rows = files.read(made / "run.parquet")
    flow = next(row for row in rows if row.kind == "flow" and row.event == "received")
    out, _ = lines(capsys, "show", str(made / "run.parquet"), "--at", str(flow.seq))
    told = "\n".join(out)
    assert "0 + 3 − 0 = 3" in told
    assert "clause   2.6.7" in told
    assert "broker: link " in told
    assert "client:" in told
    assert "on the wire" in told


def test_show_tells_every_run_of_a_trace(capsys, made):
    """A trace of two captures has two stories; one can be chosen."""
    out, _ = lines(capsys, "show", str(made / "both.parquet"))
    names = [line.removeprefix("run ") for line in out if line.startswith("run ")]
    assert len(names) == 2
    one, _ = lines(capsys, "show", str(made / "both.parquet"), "--run", names[1])
    assert one[0] == f"run {names[1]}"
    assert len(one) < len(out)


def test_secrets_are_not_shown(capsys, made):
    """A SASL response in a capture is a password."""
    rows = files.read(made / "rabbit.parquet")
    init = next(row for row in rows if row.kind == "sasl-init")
    out, _ = lines(capsys, "show", str(made / "rabbit.parquet"), "--at", str(init.seq))
    assert "guest" not in "\n".join(out)
    assert "6775657374" not in "\n".join(out)


# -- import -------------------------------------------------------------------------------------


def test_import_makes_a_trace_and_reports(capsys, folder):
    """Connections, links and frames on stdout; what was written on stderr."""
    out, err = lines(capsys, "import", str(CAPTURE), "-o", "t.parquet")
    assert "56 frames of AMQP 1.0 on 1 connection" in out[0]
    assert any("25 deliveries" in line for line in out)
    assert err == ["t.parquet: 56 rows"]


def test_one_row_is_told_as_one(capsys, folder):
    """Of one capture; of a folder of them in `test_import_many`."""
    Path("one.log").write_text("[0x1]: AMQP:FRAME:0 -> AMQP\n")
    _, err = lines(capsys, "import", "one.log", "-o", "t.parquet")
    assert err[-1].endswith("1 row")
    assert "1 captures" not in err[-1]


def test_the_good_ones_of_several_captures_are_kept(capsys, folder):
    """Each skipped one gets a line; --strict writes nothing at all."""
    Path("cat.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    argv = ["import", str(CAPTURE), "cat.jpg", "absent.pcap", "-o", "t.parquet"]
    _, err = lines(capsys, *argv)
    assert [line.split(":")[1].strip() for line in err[:2]] == ["skipped", "skipped"]
    assert len(err) == 3
    assert len(files.read("t.parquet")) == 56
    Path("t.parquet").unlink()
    out, err = lines(capsys, *argv, "--strict", code=1)
    assert out == []
    assert err[-1] == "workbench import: nothing written, because --strict was said"
    assert sorted(os.listdir()) == ["cat.jpg"]


def test_a_capture_that_is_cut_is_good_up_to_there(capsys, folder):
    """With --strict too, as its help says; the report tells of it."""
    Path("cut.pcapng").write_bytes(CAPTURE.read_bytes()[:6000])
    out, _ = lines(capsys, "import", "cut.pcapng", "--strict", "-o", "t.parquet")
    assert out[1].startswith("problem: cut.pcapng: the file ends in the middle of a block")
    assert len(files.read("t.parquet")) == 36
    told = " ".join(" ".join(lines(capsys, "import", "--help")[0]).split())
    assert "of one that is cut, all before that place is kept" in told


def test_a_folder_gets_one_file_a_capture(capsys, folder):
    """And the folder is a trace again, for every command."""
    Path("traces").mkdir()
    lines(capsys, "import", str(CAPTURE), str(OTHER), "-o", "traces")
    assert len(os.listdir("traces")) == 2
    out, _ = lines(capsys, "show", "traces")
    assert len([line for line in out if line.startswith("run ")]) == 2


def test_a_redacted_trace_holds_no_secret(capsys, folder):
    """Neither fields nor octets."""
    lines(capsys, "import", str(CAPTURE), "--redact", "-o", "t.parquet")
    rows = files.read("t.parquet")
    assert not any(b"\0guest\0" in (row.raw or b"") for row in rows)
    assert not any("guest" in str(row.frame) for row in rows if row.kind == "sasl-init")


# -- export -------------------------------------------------------------------------------------


def test_export_makes_a_page_and_a_capture(capsys, folder, made):
    """The ending of the name says which; the capture can be imported again."""
    for name in ("t.html", "t.pcapng"):
        out, err = lines(capsys, "export", str(made / "rabbit.parquet"), "-o", name)
        assert out == []
        assert err[0].startswith(f"{name}: 56 ")
    assert "<script" in Path("t.html").read_text(encoding="utf-8")
    lines(capsys, "import", "t.pcapng", "-o", "again.parquet")
    before = [(row.kind, row.frame) for row in files.read(made / "rabbit.parquet")]
    assert [(row.kind, row.frame) for row in files.read("again.parquet")] == before


def test_a_slice_begins_with_the_right_counters(capsys, folder, made):
    """Steps from the middle carry the state before them."""
    argv = ["--from", "40", "--to", "50", "--title", "the middle", "-o", "t.html"]
    lines(capsys, "export", str(made / "rabbit.parquet"), *argv)
    page = Path("t.html").read_text(encoding="utf-8")
    assert "<title>the middle</title>" in page
    stored = re.search(r'id="scene">([^<]*)<', page)[1]
    doc = json.loads(gzip.decompress(base64.b64decode(stored)))
    assert (doc["first"], len(doc["branches"][0]["steps"])) == (41, 11)
    assert "rows 40 to 50 of 56; what came before is in the counters" in doc["idea"]


def test_a_slice_of_a_trace_that_lost_rows_holds_the_rows_that_were_asked_for(capsys, folder, made):
    """A row has a number, which is not its place where others are missing before it."""
    rows = files.read(made / "rabbit.parquet")
    files.write("lost.parquet", [*rows[:10], *rows[20:]])
    lines(capsys, "export", "lost.parquet", "--from", "30", "--to", "33", "-o", "t.pcapng")
    lines(capsys, "import", "t.pcapng", "--port", "5672", "-o", "again.parquet")
    assert [row.kind for row in files.read("again.parquet")] == [row.kind for row in rows[30:34]]


def test_rows_without_frames_are_no_capture(capsys, folder, made):
    """An act or a queue's own event is no frame: there would be nothing in the file."""
    rows = files.read(made / "run.parquet")
    act = next(row for row in rows if row.event == "action")
    argv = ["--from", str(act.seq), "--to", str(act.seq), "-o", "t.pcapng"]
    telling = "the trace has no frames to export"
    refused(capsys, "export", str(made / "run.parquet"), *argv, code=1, telling=telling)


def test_a_page_has_a_bound_and_says_how_to_choose(capsys, folder, made, monkeypatch):
    """A trace that no browser would like to hold is cut by the person, not by chance."""
    monkeypatch.setattr("workbench.views.scene.MOST_ROWS", 10)
    argv = ["export", str(made / "rabbit.parquet"), "-o", "t.html"]
    refused(capsys, *argv, code=2, telling="56 rows are too many for a page (at most 10)")


# -- what is refused ----------------------------------------------------------------------------

REFUSED = [
    ("scenarios credti", 2, "did you mean credit?"),
    ("run credti -o t.parquet", 2, "no scenario 'credti'; did you mean credit?"),
    ("run credit --preset spex -o t.parquet", 2, "no preset 'spex'; did you mean spec"),
    ("run credit --preset rmq4.3 --config max_credit=3 -o t.parquet", 2,
     "no setting 'max_credit' here; legal: max_link_credit"),
    ("run credit --config max_link_credit=3 -o t.parquet", 2, "begins with rmq"),
    ("run credit --config max_link_credit -o t.parquet", 2, "write it as NAME=NUMBER"),
    ("run credit --config frame_max=MANY -o t.parquet", 2, "NAME=NUMBER"),
    ("run credit --set mesages=3 -o t.parquet", 2, "did you mean messages"),
    ("run credit --set messages -o t.parquet", 2, "write it as name=value"),
    ("run credit --set messages=-1 -o t.parquet", 2, "legal: 0 to 100000 messages"),
    ("run credit --set messages=MANY -o t.parquet", 2, "legal: 0 to 100000"),
    ("run credit --set messages=many -o t.parquet", 2, "not a whole number; legal:"),
    ("run credit --set messages=1.5 -o t.parquet", 2, "not a whole number; legal:"),
    ("run credit --set policy=best -o t.parquet", 2, "one of manual"),
    ("run credit --act grnat:link_credit=3 -o t.parquet", 2, "did you mean grant?"),
    ("run credit --act grant -o t.parquet", 2, "grant needs link_credit"),
    ("run credit --act grant:link_credit=-1 -o t.parquet", 2, "0 to 4294967295"),
    ("run credit --act grant:link_credit=4294967296 -o t.parquet", 2, "4294967295"),
    ("run credit --act grant:credit=3 -o t.parquet", 2, "did you mean link_credit?"),
    ("run credit --act 9999:grant:link_credit=3 -o t.parquet", 2, "does not exist"),
    ("run credit --act 0:grant:link_credit=3 -o t.parquet", 2, "not attached yet"),
    ("run credit --act 1:2:3:4 -o t.parquet", 2, "[SEQ:]NAME"),
    ("run credit --act '' -o t.parquet", 2, "[SEQ:]NAME"),
    ("run two_senders", 2, "where to write the trace with -o"),
    ("run two_senders --share -o t.parquet", 2, "a long run, written as it is made"),
    ("run two_senders --act stop -o t.parquet", 2, "neither --act nor --share"),
    ("run two_senders --set run_ms=0 -o t.parquet", 2, "legal: 1 to 60000 ms"),
    ("run two_senders --preset rmq4.3 --set latency_us=0 -o t.parquet", 2,
     "legal: latency_us from 1, or a preset with session_us"),
    ("run credit -o t.txt", 2, "must end in .parquet"),
    ("run credit -o t.PARQUET", 2, "must end in .parquet"),
    ("run credit -o nowhere/t.parquet", 1, "there is no folder nowhere"),
    ("run credit -o .", 1, "is a folder"),
    ("run credit", 2, "-o, or ask for --share"),
    ("run --share", 2, "name a scenario, or give a share code"),
    ("run --code hello --share", 1, "no share code: one begins with WB1."),
    ("run --code '' --share", 1, "the share code is empty"),
    ("run --code WB7.x --share", 1, "version 7"),
    ("run credit --code WB1.x --share", 2, "leave them out"),
    ("run --code WB1.x --act grant:link_credit=3 --share", 2, "leave them out"),
    ("run credit --strict --share", 2, "--strict is for --code"),
    ("run --code WB1.x -o t.txt", 2, "must end in .parquet"),
    ("show absent.parquet", 1, "no such file"),
    ("show text.parquet", 1, "is not a Parquet file"),
    ("show empty.parquet", 1, "is empty"),
    ("show other.parquet", 1, "not a trace: missing columns"),
    ("show version.parquet", 1, f"schema version 99, and this is version {SCHEMA_VERSION}"),
    ("show capture.pcapng", 1, "first: workbench import capture.pcapng -o capture.parquet"),
    ("show mixed", 1, "is not a Parquet file"),
    ("show nothing", 1, "no Parquet file"),
    ("show run.parquet --at -1", 2, "legal: 0 to "),
    ("show run.parquet --at 99999", 2, "row 99999 is not in this trace"),
    ("show run.parquet --run nobody", 2, "no run 'nobody'"),
    ("show run.parquet --around 3", 2, "--around is for --at"),
    ("show run.parquet --at 3 --around -1", 2, "legal: 0 or more"),
    ("show both.parquet --at 3", 2, "holds 2 runs; choose one with --run"),
    ("import absent.pcap -o t.parquet", 1, "absent.pcap: No such file"),
    ("import cat.jpg -o t.parquet", 1, "cat.jpg"),
    ("import empty.pcap -o t.parquet", 1, "empty.pcap"),
    ("import cat.jpg -o t.csv", 2, "must end in .parquet"),
    ("import cat.jpg -o nowhere/t.parquet", 1, "there is no folder nowhere"),
    ("import capture.pcapng --port 0 -o t.parquet", 2, "legal: 1 to 65535"),
    ("import capture.pcapng --port 1 -o t.parquet", 1, "no AMQP 1.0"),
    ("import good.parquet -o good.parquet", 2, "is the output as well"),
    ("import nothing -o t.parquet", 1, "nothing: no capture there"),
    ("export run.parquet -o t.docx", 2, "must end in .html, .pcapng or .py"),
    ("export run.parquet -o nowhere/t.html", 1, "there is no folder nowhere"),
    ("export run.parquet --from 5 --to 2 -o t.html", 2, "no rows from 5 to 2; legal: 0 to"),
    ("export run.parquet --from -3 -o t.html", 2, "legal: 0 to"),
    ("export both.parquet -o t.html", 2, "holds 2 runs; choose one with --run"),
    ("export absent.parquet -o t.html", 1, "no such file"),
    ("export run.parquet -o test_t.py", 1, "does not hold what its run was made of"),
    ("export hello -o test_t.py", 1, "no share code"),
    ("export WB1.x -o credit.py", 2, "names that begin with test_"),
    ("export WB1.x -o test_t.py --from 5", 2, "--run, --from and --to are for a trace"),
    ("export WB1.x -o test_t.py --title hello", 2, "--title is for a page"),
    ("export run.parquet -o t.pcapng --title hello", 2, "--title is for a page"),
    ("export run.parquet -o t.html --expect hash", 2, "--expect is for a test"),
    ("analyze nowhere.parquet stalls", 1, "no such file"),
    ("analyze nowhere.parquet what", 2, "invalid choice"),
    ("analyze stalls nowhere.parquet", 2, "workbench analyze TRACE stalls"),
    ("analyze nowhere.parquet compare", 2, "compare takes two traces"),
    ("analyze nowhere.parquet grants b.parquet", 2, "grants takes one trace"),
    ("analyze capture.pcapng stalls", 1, "first: workbench import"),
    ("analyze run.parquet grants --window 2", 2, "--window is for throughput, and not for grants"),
    ("analyze run.parquet throughput --window 0", 2, "0.000001 or more, and less than 10^12"),
    ("analyze run.parquet throughput --window 1e12", 2, "0.000001 or more, and less than 10^12"),
    ("analyze run.parquet throughput --window nan", 2, "0.000001 or more, and less than 10^12"),
    ("analyze run.parquet credit --rows -1", 2, "--rows -1; legal: 0 or more, 0 for all"),
    ("analyze run.parquet stalls --checkpoint kept", 2, "--checkpoint is for --follow"),
    ("analyze nowhere stalls --follow", 1, "nowhere: no such file or folder"),
    ("analyze nothing credit --follow", 2, "--follow answers stalls, through"),
    ("analyze nothing stalls --follow --engine spark", 2, "--follow is answered without Spark"),
    ("analyze nothing stalls --follow --format csv", 2, "with --format csv; legal: table, json"),
    ("analyze nothing stalls --follow --window 2", 2, "--window is for throughput"),
    ("analyze nothing stalls other --follow", 2, "stalls takes one trace, and there is other too"),
    ("analyze nothing throughput --follow --window 0", 2, "legal: 0.000001 or more"),
    ("explore --grants three", 2, "grants has 'three' in it"),
    ("explore --grants '3,6 drain'", 2, "a schedule has no drain and no echo"),
    ("explore --grants 1,,2", 2, "grants has '' in it"),
    ("explore --grants -3", 2, "grants has '-3' in it"),
    ("explore --grants 2147483648", 2, "together less than 2147483648"),
    ("explore --grants 5000000000", 2, "link-credits from 0 to 4294967295"),
    ("explore --rule guess", 2, "no rule 'guess'; there are: spec, set"),
    ("explore --messages -1", 2, "legal: 0 or more"),
    ("explore --messages 4294967295", 2, "together less than 2147483648"),
    ("explore --messages many", 2, "--messages"),
    ("explore --initial-delivery-count 4294967296", 2, "4294967296; legal: 0 to 4294967295"),
    ("explore --max-states 0", 2, "legal is 1 or more"),
    ("explore --max-seconds -1", 2, "legal is 0 or more"),
    ("explore --max-seconds nan", 2, "legal is 0 or more"),
    ("explore --max-megabytes 0", 2, "legal is 1 or more"),
]  # fmt: skip
"""What is typed (MANY: thousands of digits), the exit code, and of its one line what tells why."""


@pytest.mark.parametrize(("typed", "code", "telling"), REFUSED)
def test_what_cannot_be_is_refused(capsys, folder, made, typed, code, telling):
    """One line that says what would be legal, or what a file holds instead; nothing is written."""
    for name in ("run.parquet", "both.parquet"):
        Path(name).write_bytes((made / name).read_bytes())
    for name in ("capture.pcapng", "good.parquet"):
        Path(name).write_bytes(CAPTURE.read_bytes())
    Path("cat.jpg").write_bytes(b"\xff\xd8\xff\xe0" * 20)
    for name in ("nothing", "mixed"):
        Path(name).mkdir()
    for name in ("text.parquet", "mixed/text.parquet"):
        Path(name).write_text("no parquet at all")
    for name in ("empty.parquet", "empty.pcap"):
        Path(name).write_bytes(b"")
    pq.write_table(pa.table({"a": [1]}), "other.parquet")
    version = {"workbench.trace.version": "99"}
    pq.write_table(pq.read_table("run.parquet").replace_schema_metadata(version), "version.parquet")
    refused(capsys, *shlex.split(typed.replace("MANY", "9" * 5000)), code=code, telling=telling)


# -- the help's own examples --------------------------------------------------------------------


def examples() -> list[list[str]]:
    """Every `workbench ...` line of the help texts, in an order in which the files come about."""
    from workbench.cli.main import TEXT, commands

    names = ["scenarios", "run", "import", "show", "export"]
    found = []
    for text in (TEXT, *(module.TEXT for module in commands().values())):
        for line in re.sub(r"\\\n +", "", text).splitlines():
            if line.startswith("  workbench "):
                command = line.strip().split("  ")[0].split("|")[0]
                found.append(command.split()[1:])
    return sorted((each for each in found if each[0] in names), key=lambda a: names.index(a[0]))


def _no_java():
    raise AnalysisError("no Java")


@pytest.mark.slow
def test_the_examples_of_the_help_work(capsys, folder, monkeypatch):
    """Whatever the help shows can be typed as it stands."""
    for name in ("capture", "rabbit", "a", "monday"):
        Path(f"{name}.pcapng").write_bytes(CAPTURE.read_bytes())
        Path(f"{name}.pcap").write_bytes(CAPTURE.read_bytes())
    for name in ("b", "tuesday"):
        Path(f"{name}.pcap").write_bytes(OTHER.read_bytes())
    Path("traces").mkdir()
    Path("captures").mkdir()
    Path("captures/a.pcap").write_bytes(CAPTURE.read_bytes())
    monkeypatch.setattr("workbench.analysis.java.find_java", _no_java)  # a start of Spark is long
    assert len(examples()) > 10
    for argv in examples():
        if "long.parquet" in argv:
            continue  # its steps 40000 and on would take a long run
        assert main(argv) == 0, (argv, capsys.readouterr().err)
