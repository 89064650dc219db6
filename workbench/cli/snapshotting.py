"""`workbench snapshot`: a broker as it is now, read and not touched, with advice."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from .console import add_format, add_many, add_output, say, table, tell
from .places import output_file

HELP = "queues, links and their credit of a broker as it is now; read only"
TEXT = """\
Look at a broker once: its queues, links, their credit and windows, and its
alarms.

A RabbitMQ's management interface is asked over HTTP, with GET alone; 4.1 and
later tell of the links of AMQP 1.0. Where it is off, AMQP 0-9-1 tells how many
messages are ready and how many consumers there are in each queue that --queue
names. What cannot be read is listed. Names of connections and users are left
out; the password is sent to the broker, and kept nowhere.

  workbench snapshot amqp://guest:guest@localhost
  workbench snapshot amqp://localhost --queue orders --queue invoices -o a.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `snapshot` takes."""
    parser.add_argument("url", metavar="URL", help="amqp://user:password@host:port/virtual-host")
    add_many(parser, "--queue", "NAME", "a queue to ask about over AMQP 0-9-1", "queues")
    parser.add_argument(
        "--http",
        default="",
        metavar="URL",
        help="the management interface (port 15672 of the host)",
    )
    add_output(parser, "FILE", "a page that shows it, in .html")
    add_format(parser)


def command(arguments: argparse.Namespace) -> int:
    """Look, tell, draw."""
    from workbench.net.snapshot import snapshot

    target = None if arguments.output is None else output_file(arguments.output, (".html",))
    found = snapshot(arguments.url, arguments.queues, http=arguments.http)
    if arguments.format == "json":
        print(json.dumps(asdict(found) | {"advice": found.advice()}, indent=1))
    else:
        rows = [
            (one.name, one.kind or "-", one.ready, one.unacknowledged, one.consumers)
            for one in found.queues
        ]
        table(("queue", "type", "ready", "unsettled", "consumers"), rows, caption=found.broker)
        if found.links:
            table(
                ("connection", "broker", "address", "credit", "delivery-count", "window"),
                [
                    (
                        one.connection, "sends" if one.sends else "receives", one.address,
                        one.credit, one.delivery_count, one.window,
                    )
                    for one in found.links
                ],
            )  # fmt: skip
        tell(found.advice())
    for line in found.unread:
        say(f"not read: {line}")
    if target is not None:
        from workbench.trace.whole import write_whole
        from workbench.views.scene_snapshot import snapshot_scene
        from workbench.views.stage_page import stage_page

        write_whole(target, stage_page(snapshot_scene(found), 0))
        say(f"{target}: {target.stat().st_size:,} octets")
    return 0
