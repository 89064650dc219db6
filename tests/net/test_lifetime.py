"""A server in a notebook: it starts at once and leaves nothing behind, however its cell ends."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.patience import TIMEOUT_S, held_on, until
from tests.ports import free_port
from workbench.net import ListenError
from workbench.net.serve import Broker, serve

REPO = Path(__file__).resolve().parents[2]


def listens(port):
    """Whether somebody takes a connection there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S):
            return True
    except ConnectionRefusedError:
        return False


def test_a_broker_is_served_with_its_queues():
    """`Broker(...).serve()` is `serve` with what is in the broker."""
    with Broker(preset="rmq4.3", queues=("a", "b")).serve() as server:
        assert list(server.listener.broker.queues) == ["a", "b"]
        assert server.overview()["preset"] == "rmq4.3"
    with pytest.raises(ListenError, match="a list of names"):
        serve(queues="a")


@pytest.mark.parametrize("port", [-1, 65_536, "5672"])
def test_a_port_that_is_none_is_refused_in_words(port):
    """A server that cannot be reached is not begun."""
    with pytest.raises(ListenError, match=f"port {port!r}: legal: 0 to 65535"):
        serve(port=port)


def test_a_trace_in_a_file_is_refused_in_words(tmp_path):
    """It is a folder of files."""
    kept = tmp_path / "kept.parquet"
    kept.touch()
    with pytest.raises(ListenError, match="is a file; a trace takes a folder"):
        serve(trace=kept)


def test_clients_are_told_that_the_broker_stops(raw_client):
    """`stop` closes each connection with `amqp:connection:forced` [2.8.16]."""
    with serve() as server:
        client = raw_client(server).open()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        client.pump(lambda: "close" in client.kinds())
        stopping.join(TIMEOUT_S)
        assert client.errors() == ["amqp:connection:forced"]
        assert not server.running


def test_a_client_that_does_not_answer_cannot_keep_it_from_stopping(raw_client):
    """Half a second after the close the socket is cut."""
    with serve() as server:
        client = raw_client(server).open()
        server.stop()
        assert not server.running
        assert not listens(server.port)
        client.pump(lambda: client.closed)


def test_what_is_held_goes_on_when_the_broker_stops(raw_client):
    """The gates open before the end: a message that waits at one reaches the client."""
    with serve(queues=["q"]) as server:
        client = raw_client(server).open()
        session = client.session()
        client.sender(session).send(b"\x00\x53\x75\xa0\x01x", settled=True)
        receiver = client.receiver(session)
        wire = server.wire()
        wire.hold("b2c")
        receiver.grant(1)
        client.flush()
        held_on(wire, 1)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        client.pump(lambda: "close" in client.kinds())
        stopping.join(TIMEOUT_S)
    assert client.kinds().index("transfer") < client.kinds().index("close")


def test_a_port_that_one_of_ours_holds_is_told_as_that():
    """The usual reason in a notebook: the server of another cell is still there."""
    with serve() as server, pytest.raises(ListenError, match="stop that one"):
        serve(port=server.port)


def test_after_stop_a_question_is_answered_in_words():
    """A handle that outlives its server says so."""
    server = serve()
    server.stop()
    with pytest.raises(ListenError, match="is stopped"):
        server.connections()
    assert "stopped" in repr(server)


@pytest.fixture
def kernel():
    """A kernel of its own, as JupyterLab would start it; gives a function that runs code."""
    manager_module = pytest.importorskip("jupyter_client.manager")
    manager, client = manager_module.start_new_kernel(
        kernel_name="python3",
        cwd=str(REPO),
        env={**os.environ, "PYTHONPATH": str(REPO)},
        startup_timeout=TIMEOUT_S,
    )

    def run(code, cell=None):
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        content |= {"user_expressions": {}, "stop_on_error": True}
        message = client.session.msg("execute_request", content)
        message["metadata"] = {} if cell is None else {"cellId": cell}
        client.shell_channel.send(message)
        said = ""
        while True:
            answer = client.get_iopub_msg(timeout=TIMEOUT_S)
            if answer["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            if answer["msg_type"] == "stream":
                said += answer["content"]["text"]
            elif answer["msg_type"] == "error":
                said += answer["content"]["evalue"]
            elif answer["msg_type"] == "status" and answer["content"]["execution_state"] == "idle":
                return said.strip()

    run.manager = manager
    run.client = client
    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("cell", ["a-cell", None], ids=["told by the front end", "not told"])
def test_a_cell_that_is_run_again_stops_what_it_started_before(kernel, cell):
    """Its port is free again, and no second server is left behind."""
    kernel("from workbench import serve")
    first = int(kernel("server = serve(); print(server.port)", cell))
    again = int(kernel("server = serve(); print(server.port)", cell))
    assert again != first
    assert not listens(first)
    assert listens(again)
    other = int(kernel("other = serve(); print(other.port)", cell and "another-cell"))
    assert listens(again)
    assert listens(other)


def test_an_interrupted_cell_leaves_the_broker_as_it_was(kernel):
    """Ctrl-C ends the cell that waits; the broker goes on serving, and can still be stopped."""
    port = int(kernel("from workbench import serve; server = serve(); print(server.port)"))
    told = kernel(
        "import os, signal, threading, time\n"
        "try:\n"
        "    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('interrupted')"
    )
    assert told == "interrupted"
    assert listens(port)
    assert kernel("server.stop(); print(server.running)") == "False"
    assert not listens(port)


def test_a_kernel_that_restarts_leaves_no_listener_behind(kernel):
    """The port can be taken by the new kernel at once."""
    port = free_port()  # one that meanwhile no other test's server is given
    kernel(f"from workbench import serve; server = serve(port={port})")
    assert listens(port)
    kernel.manager.restart_kernel(now=False)
    kernel.client.wait_for_ready(timeout=TIMEOUT_S)
    assert not listens(port)
    told = kernel(f"from workbench import serve; server = serve(port={port}); print(server.port)")
    assert told == str(port)


HELD = """
import sys, time
from workbench.net.serve import serve
server = serve(trace=sys.argv[1])
print(server.port, flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_ended_frees_its_port(tmp_path, number):
    """Whatever ends it: nobody listens afterwards, and the folder can be read."""
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, str(tmp_path)], cwd=REPO, stdout=subprocess.PIPE, text=True
    )
    port = int(process.stdout.readline())
    assert listens(port)  # a connection, so there are rows
    until(lambda: list(tmp_path.glob("*.parquet")))
    process.send_signal(number)
    process.wait(TIMEOUT_S)
    process.stdout.close()
    assert not listens(port)
    from workbench.trace import files

    assert [row.event for row in files.read(tmp_path)][:1] == ["connect"]


@pytest.mark.slow
def test_a_program_that_ends_without_stop_tells_its_clients(tmp_path):
    """The end of the interpreter is a stop: the trace is whole to its last row."""
    code = (
        "import sys, socket; from workbench.net.serve import serve; s = serve(trace=sys.argv[1]);"
        "c = socket.create_connection(('127.0.0.1', s.port)); c.sendall(b'AMQP\\0\\1\\0\\0');"
        "print(c.recv(8))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=REPO, capture_output=True, text=True,
        timeout=TIMEOUT_S, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    from workbench.trace import files

    assert [row.event for row in files.read(tmp_path)][-1] == "disconnect"
