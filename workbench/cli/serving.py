"""`workbench serve`: the broker, or a proxy, on a socket, for clients of one's own."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any

from .choosing import add_config, preset_configured
from .console import UsageError, add_many, place, say
from .holding import hold_by_hand

HELP = "a broker on a socket, or a proxy in front of yours, for clients of your own"
TEXT = """\
Start the broker on a socket and keep it until Ctrl-C (or SIGTERM).

Any client of AMQP 1.0, 0-9-1 or 0-10 can connect: its first octets say which
it speaks. Over 0-9-1 a client declares its queues. Over 1.0, under the preset
spec, a queue is made when a link to its name is first attached; under
RabbitMQ's presets name queues with --queue (their address is /queues/NAME), or
let a client declare them through /management. The address of the broker goes
to stdout, what happens to stderr. Only this machine can connect; another
--host needs --allow-remote, and then --tls or --user.

A client of 1.0 has to begin with SASL; one that does not is refused, as rhea
does without a username. Without --user, ANONYMOUS is let in, and PLAIN as
guest with the password guest; with --user, PLAIN as one of those users, and
nobody else.

  workbench serve
  workbench serve --port 0 --trace live             a free port, a folder
  workbench serve --preset rmq4.3 --queue orders    as RabbitMQ, with a queue
  workbench serve --preset rmq4.3 --config vm_memory_high_watermark=64MB
      an alarm soon
  workbench serve --user ann:secret --tls cert.pem key.pem --host 0.0.0.0 \\
      --allow-remote

With --forward it is no broker but a gate in front of another one. Every octet
is passed on as it is; frames of AMQP 1.0 and 0-9-1 are decoded, recorded and,
with --hold, let through by hand:

  workbench serve --forward broker.example:5672 --trace live
  workbench serve --forward amqps://broker.example --hold

With --hold the frames of new connections wait. Press Enter to let one through,
or type a number for that many, c2b or b2c for one from client to broker or
back, go to let all run, hold to close the gates again, a breakpoint such as
`break transfer`, `break basic.deliver` or `break link_credit <= 3`, clear to
remove those, or quit.

The trace is a folder of Parquet files that are always whole; a killed process
loses the last second at most. The other commands read it while it grows.
Passwords are not in it.
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
    parser.add_argument("--preset", metavar="P", help="default numbers (spec)")
    add_config(parser)
    add_many(parser, "--queue", "NAME", "a queue that is there from the beginning", "queues")
    parser.add_argument(
        "--forward", type=place, metavar="TARGET",
        help="pass on to this broker: host:port or amqps://host:port",
    )  # fmt: skip
    parser.add_argument(
        "--forward-ca", metavar="PEM", help="whom to trust with amqps; else whom the system trusts"
    )
    parser.add_argument(
        "--hold", action="store_true", help="hold the frames of new connections for your hand"
    )
    parser.add_argument("--trace", type=place, metavar="DIR", help="keep the trace in this folder")
    about = "who may connect with SASL PLAIN, and nobody else"
    add_many(parser, "--user", "NAME:PASSWORD", about, "users")
    parser.add_argument(
        "--tls", nargs=2, metavar=("CERT", "KEY"), help="PEM files of a certificate and its key"
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="let other machines connect, if --host does"
    )


def command(arguments: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    for number in (signal.SIGINT, signal.SIGTERM):
        _on_signal(number, _stop)
    try:
        broker = _start(arguments)
    except _StopSignal:
        return 0
    try:
        broker.freeze_new(arguments.hold)
        print(broker.url, flush=True)
        say(f"{_what(broker)}; stop with Ctrl-C")
        if arguments.hold:
            hold_by_hand(broker, sys.stdin, say)
        while broker.running and not (arguments.hold and sys.stdin.isatty()):
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
        raise UsageError(f"--port {port}: legal: 0 to 65535")
    _check_reach(arguments)
    options: dict[str, Any] = {
        "host": arguments.host,
        "port": port,
        "allow_remote": arguments.allow_remote,
    }
    if arguments.tls:
        from workbench.net.tls import server_context

        options["tls"] = server_context(*arguments.tls)
    kept = _recording(arguments)
    try:
        return (
            _proxy(arguments, kept, options)
            if arguments.forward
            else _broker(arguments, kept, options)
        )
    except BaseException:
        if kept is not None:
            kept.close()
        raise


def _broker(arguments: argparse.Namespace, kept: Any, options: dict[str, Any]) -> Any:
    if arguments.forward_ca:
        raise UsageError("--forward-ca needs --forward amqps://...")
    if "" in arguments.queues:
        raise UsageError("--queue: a queue needs a name")
    preset = preset_configured(arguments.preset or "spec", arguments.config)
    users = dict(_user(text) for text in arguments.users) or None
    from workbench.net import LiveBroker

    return LiveBroker(preset, users=users, queues=arguments.queues, recording=kept, **options)


def _proxy(arguments: argparse.Namespace, kept: Any, options: dict[str, Any]) -> Any:
    if arguments.preset or arguments.users or arguments.queues or arguments.config:
        raise UsageError(
            "--preset, --user, --queue and --config are the other broker's business; with --forward"
            " legal: none of them"
        )
    if arguments.forward_ca:
        from workbench.net.tls import trust_in

        options["trust"] = trust_in(arguments.forward_ca)
    from workbench.net.proxy import LiveProxy

    return LiveProxy(arguments.forward, recording=kept, **options)


def _recording(arguments: argparse.Namespace) -> Any:
    """What keeps the trace: in the folder, or in memory as long as frames are held by hand."""
    if arguments.trace is None:
        return None
    from workbench.net.serve import recording

    return recording(arguments.trace, time.strftime("live-%Y%m%d-%H%M%S"))


def _what(broker: Any) -> str:
    target = getattr(broker, "target", None)
    return f"preset {broker.overview()['preset']}" if target is None else f"forwards to {target}"


def _check_reach(arguments: argparse.Namespace) -> None:
    """Refuse to be reached from other machines by oversight, or without a lock."""
    from workbench.net.server import LOOPBACKS

    if arguments.host in LOOPBACKS:
        return
    if not arguments.allow_remote:
        raise UsageError(
            f"--host {arguments.host} can be reached from other machines; if that is meant add"
            " --allow-remote"
        )
    if not (arguments.tls or (arguments.users and not arguments.forward)):
        raise UsageError(
            f"--host {arguments.host} without a lock: anybody could connect; add --tls or --user"
        )


def _user(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise UsageError("--user: write it as NAME:PASSWORD")
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
