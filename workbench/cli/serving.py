"""`workbench serve`: the broker on a socket, for clients of one's own."""

from __future__ import annotations

import argparse
import signal
import time
from pathlib import Path
from typing import Any

from .choosing import add_config, preset_configured
from .console import WRONG_USAGE, CommandError, say

NAME = "serve"
HELP = "a broker on a socket, for clients of your own"
TEXT = """\
Start the broker on a socket and keep it until Ctrl-C (or SIGTERM).

Any AMQP 1.0 client can connect. Under the preset spec a queue is made when a link to its name is
first attached; under RabbitMQ's presets name queues with --queue (their address is /queues/NAME),
or let a client declare them through /management. The address of the broker goes to stdout, what
happens to stderr. Without --user everybody is let in, and only this machine can connect; another
--host needs --allow-remote, and then --tls or --user.

  workbench serve
  workbench serve --port 0 --trace live             a free port; keep the trace in a folder
  workbench serve --preset rmq4.3 --queue orders    as RabbitMQ does, with one queue
  workbench serve --user ann:secret --tls cert.pem key.pem --host 0.0.0.0 --allow-remote

The trace is a folder of Parquet files that are always whole; a killed process loses the last
second at most. The other commands read it while it grows. Passwords are not in it.
"""

AMQP_PORT, AMQPS_PORT = 5672, 5671
LOOK_AGAIN_S = 0.1


class _StopSignal(KeyboardInterrupt):
    """Somebody wants an end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `serve` takes."""
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        help=f"TCP port; 0 takes a free one ({AMQP_PORT}, with TLS {AMQPS_PORT})",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="H", help="address to listen on (%(default)s)"
    )
    parser.add_argument("--preset", default="spec", metavar="P", help="default numbers (spec)")
    add_config(parser)
    parser.add_argument(
        "--queue",
        action="append",
        default=[],
        metavar="NAME",
        dest="queues",
        help="a queue that is there from the beginning; may be given several times",
    )
    parser.add_argument("--trace", metavar="DIR", help="keep the trace in this folder")
    parser.add_argument(
        "--user",
        action="append",
        default=[],
        metavar="NAME:PASSWORD",
        dest="users",
        help="who may connect, and nobody else; may be given several times",
    )
    parser.add_argument(
        "--tls", nargs=2, metavar=("CERT", "KEY"), help="PEM files of a certificate and its key"
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="let other machines connect, if --host does"
    )


def command(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    from workbench.net.listener import ListenError

    for number in (signal.SIGINT, signal.SIGTERM):
        _on_signal(number, _stop)
    try:
        broker = _start(arguments)
    except ListenError as error:
        raise CommandError(str(error)) from None
    except _StopSignal:
        return 0
    try:
        print(broker.url, flush=True)
        say(f"preset {broker.overview()['preset']}; stop with Ctrl-C")
        while broker.running:
            time.sleep(LOOK_AGAIN_S)
            _tell(broker)
    except _StopSignal:
        pass
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            _on_signal(number, signal.SIG_IGN)
        broker.stop()
    _tell(broker)
    say("stopped" + _written(broker))
    return 0


def _start(arguments: argparse.Namespace) -> Any:
    port = arguments.port
    if port is None:
        port = AMQPS_PORT if arguments.tls else AMQP_PORT
    if not 0 <= port <= 65535:
        raise CommandError(f"--port {port}: legal: 0 to 65535", WRONG_USAGE)
    _check_reach(arguments)
    preset = preset_configured(arguments.preset, arguments.config)
    users = dict(_user(text) for text in arguments.users) or None
    options: dict[str, Any] = {
        "host": arguments.host,
        "port": port,
        "users": users,
        "allow_remote": arguments.allow_remote,
        "queues": arguments.queues,
    }
    if arguments.tls:
        from workbench.net.tls import server_context

        options["tls"] = server_context(*arguments.tls)
    if arguments.trace is None:
        from workbench.net.server import LiveBroker

        return LiveBroker(preset, **options)
    from workbench.live import serve

    folder = Path(arguments.trace)
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder}: is a file; --trace takes a folder")
    return serve(preset, trace=folder, run=time.strftime("live-%Y%m%d-%H%M%S"), **options)


def _check_reach(arguments: argparse.Namespace) -> None:
    """Refuse to be reached from other machines by oversight, or without a lock."""
    from workbench.net.server import LOOPBACKS

    if arguments.host in LOOPBACKS:
        return
    if not arguments.allow_remote:
        raise CommandError(
            f"--host {arguments.host} can be reached from other machines; if that is meant add"
            " --allow-remote",
            WRONG_USAGE,
        )
    if not (arguments.tls or arguments.users):
        raise CommandError(
            f"--host {arguments.host} without a lock: anybody could connect; add --tls or --user",
            WRONG_USAGE,
        )


def _user(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise CommandError("--user: write it as NAME:PASSWORD", WRONG_USAGE)
    return name, password


def _tell(broker: Any) -> None:
    for line in broker.news():
        say(line)


def _written(broker: Any) -> str:
    recording = broker.recording
    if recording is None or recording.spool is None:
        return ""
    spool = recording.spool
    if spool.problem is not None or spool.dropped:
        lost = recording.overview()["rows"] - spool.written
        return f"; {lost:,} rows could not be written to {spool.folder}: {spool.problem}"
    return f"; {spool.written:,} rows in {spool.folder}"


def _stop(_number: int, _frame: Any) -> None:
    raise _StopSignal


def _on_signal(number: int, handler: Any) -> None:
    """Set a handler, where this is the main thread; elsewhere the owner minds the signals."""
    try:
        signal.signal(number, handler)
    except ValueError:
        return
