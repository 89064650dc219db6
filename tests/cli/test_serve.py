"""`workbench serve`: it starts quickly, says where it is, and stops cleanly."""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import TIMEOUT_S
from workbench.cli import main
from workbench.trace import files

REPO = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def served(*argv):
    """A `workbench serve` of its own; gives process and address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", "serve", "--port", "0", *argv],
        cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def hello(address):
    """Speak the AMQP header and read the answer's first octets."""
    host, port = address.split("//")[1].split(":")
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as client:
        client.sendall(b"AMQP\x03\x01\x00\x00")
        return client.recv(8)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_stops_at_a_signal(number):
    """The address is the one line of stdout; Ctrl-C and SIGTERM end it with 0."""
    with served() as (process, address):
        assert address.startswith("amqp://127.0.0.1:")
        assert hello(address) == b"AMQP\x03\x01\x00\x00"
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, out) == (0, "")
        assert err.splitlines()[-1] == "stopped"
        assert "Traceback" not in err
    with pytest.raises(OSError, match="refused"):
        hello(address)


def test_the_trace_is_in_the_folder_when_it_has_stopped(tmp_path):
    """What a client said is in the files, and the last line tells how many rows there are."""
    with served("--trace", str(tmp_path / "live")) as (process, address):
        hello(address)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=TIMEOUT_S)
    rows = files.read(tmp_path / "live")
    assert "protocol-header" in [row.kind for row in rows]
    assert f"{len(rows)} rows" in err.splitlines()[-1]


def refused(capsys, *argv, code, telling):
    """The command fails with the code and one line."""
    assert main(["serve", *argv]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert telling in said.err


@pytest.fixture
def signals():
    """The handlers of this process, put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
def test_what_cannot_be_served_is_told_in_one_line(capsys, tmp_path):
    """Bad arguments end with 2, what the machine refuses with 1."""
    refused(capsys, "--port", "65536", code=2, telling="65535")
    refused(capsys, "--preset", "rmq9", code=2, telling="rmq4.3")
    refused(capsys, "--config", "max_link_credit=5", code=2, telling="begins with rmq")
    refused(capsys, "--user", "ann", code=2, telling="NAME:PASSWORD")
    refused(capsys, "--host", "0.0.0.0", code=2, telling="--allow-remote")
    refused(capsys, "--host", "0.0.0.0", "--allow-remote", code=2, telling="--tls or --user")
    refused(capsys, "--tls", "no.pem", "no.key", code=1, telling="no.pem")
    (tmp_path / "x.pem").write_text("nonsense")
    pem = str(tmp_path / "x.pem")
    refused(capsys, "--tls", pem, pem, code=1, telling="no certificate")
    refused(capsys, "--trace", pem, code=1, telling="takes a folder")
    refused(capsys, "--forward", "http://x", code=1, telling="amqps://host:port")
    refused(capsys, "--forward", "", code=2, telling="the name is empty")
    refused(capsys, "--trace", "", code=2, telling="the name is empty")
    refused(capsys, "--forward", "x", "--user", "a:b", code=2, telling="with --forward legal")
    refused(capsys, "--forward", "x", "--preset", "spec", code=2, telling="with --forward legal")
    refused(capsys, "--forward-ca", pem, code=2, telling="needs --forward")
    refused(capsys, "--queue", "", code=2, telling="a queue needs a name")
    refused(capsys, "--forward", "amqps://x", "--forward-ca", pem, code=1, telling="x.pem")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = f"127.0.0.1 port {port}: Address already in use; port 0 takes a free one"
        refused(capsys, "--port", str(port), code=1, telling=told)
    elsewhere = ["--host", "192.0.2.1", "--allow-remote", "--user", "ann:secret", "--port", "0"]
    told = "192.0.2.1 port 0: Cannot assign requested address"
    refused(capsys, *elsewhere, code=1, telling=told)


LET_IN = (
    "A client of 1.0 has to begin with SASL; one that does not is refused",
    "ANONYMOUS is let in, and PLAIN as guest with the password guest",
    "PLAIN as one of those users, and nobody else",
)


def test_help_and_documentation_say_who_is_let_in(capsys):
    """In the same words; `tests/net/test_live.py` shows that it is so."""
    assert main(["serve", "--help"]) == 0
    documentation = (REPO / "docs" / "clients.md").read_text(encoding="utf-8").replace("`", "")
    for text in (capsys.readouterr().out, documentation):
        assert [words for words in LET_IN if words not in " ".join(text.split())] == []


def test_with_users_nobody_else_is_let_in():
    """ANONYMOUS is not offered once users are given [5.3.3]."""
    with served("--user", "ann:secret") as (_, address):
        host, port = address.split("//")[1].split(":")
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as client:
            client.sendall(b"AMQP\x03\x01\x00\x00")
            said = b""
            while b"PLAIN" not in said:
                chunk = client.recv(4096)
                assert chunk
                said += chunk
    assert b"ANONYMOUS" not in said


def test_a_proxy_passes_on_records_and_tells_what_it_forwards_to(tmp_path):
    """`--forward` puts the gate in front of another broker; its trace is observed on the wire."""
    with served("--queue", "q") as (_, behind):
        target = behind.removeprefix("amqp://")
        with served("--forward", target, "--trace", str(tmp_path)) as (process, address):
            assert hello(address) == b"AMQP\x03\x01\x00\x00"
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=TIMEOUT_S)
    assert f"forwards to {behind}" in err
    rows = files.read(tmp_path)
    assert [(row.vantage, row.event) for row in rows if row.kind == "protocol-header"] == [
        ("wire", "observed"),
        ("wire", "observed"),
    ]


def test_frames_are_let_through_by_lines_typed_on_the_terminal():
    """With `--hold` nothing passes before Enter; what waits is told, with what it carries."""
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", "serve", "--port", "0", "--hold"],
        cwd=REPO, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        host, port = process.stdout.readline().strip().split("//")[1].split(":")
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as client:
            client.sendall(b"AMQP\x03\x01\x00\x00")
            said = [process.stderr.readline() for _ in range(2)]
            assert "protocol-header, 8 octets waits" in said[-1]
            process.stdin.write(f"nonsense\n{'9' * 5_000}\n\n")
            process.stdin.flush()
            said = [process.stderr.readline() for _ in range(3)]
            assert all("legal: Enter" in line for line in said[:2])
            assert "1 let through, 0 wait" in said[2]
            process.stdin.write("go\nbreak link_credit <= 3\n")
            process.stdin.close()
            assert client.recv(8) == b"AMQP\x03\x01\x00\x00"
            err = ""
            while "stops at link_credit <= 3" not in err:
                line = process.stderr.readline()
                assert line
                err += line
            assert "free run" in err
            process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
