"""The live broker against the broker among Proton's Python examples: same client, same run.

    python benchmarks/live_broker.py [--messages N] [--rounds N] [--preset NAME] [--only rate|cost]

One Proton sender and one Proton receiver, each in a process of its own, over loopback; messages of
100 octets, sent settled and unsettled, credit 200 topped up by the client library. Every broker is
a process too: the example, `workbench serve`, and `workbench serve --trace` which records all.

Brokers take turns within each round, so a busy machine slows all of them; the ratios are what
counts. Printed are messages per second from the first sent to the last received, and the CPU time
of the broker's process per message. Then: how long a start takes until the first client is open,
and what an idle connection and an idle link cost in memory.
"""

import argparse
import contextlib
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import AtLeastOnce, AtMostOnce, Container
from proton.utils import BlockingConnection

REPO = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO))

from tests.ports import free_port  # noqa: E402

EXAMPLE = REPO / "benchmarks" / "third_party" / "proton" / "broker.py"
BODY = bytes(100)
ADDRESS = "/queues/bench"
CREDIT = 200
TIMEOUT_S = 120
PARTS = ("rate", "cost")
TICKS = os.sysconf("SC_CLK_TCK")


# -- the clients, each a process ------------------------------------------------------------------


class Sender(MessagingHandler):
    """Send as fast as credit allows; end when all are settled."""

    def __init__(self, url, count, settled):
        super().__init__()
        self.url, self.count, self.settled = url, count, settled
        self.sent = self.done = 0

    def on_start(self, event):
        connection = event.container.connect(
            self.url, allowed_mechs="ANONYMOUS", sasl_enabled=True, reconnect=False
        )
        mode = AtMostOnce() if self.settled else AtLeastOnce()
        event.container.create_sender(connection, ADDRESS, options=mode)

    def on_sendable(self, event):
        if not self.sent:
            print(time.monotonic(), flush=True)
        while event.sender.credit and self.sent < self.count:
            event.sender.send(Message(body=BODY))
            self.sent += 1
        if self.settled and self.sent == self.count:
            event.connection.close()

    def on_settled(self, event):
        self.done += 1
        if self.done == self.count:
            event.connection.close()


class Receiver(MessagingHandler):
    """Receive and accept; end with the last."""

    def __init__(self, url, count, settled):
        super().__init__(prefetch=CREDIT)
        self.url, self.count, self.settled = url, count, settled
        self.received = 0

    def on_start(self, event):
        connection = event.container.connect(
            self.url, allowed_mechs="ANONYMOUS", sasl_enabled=True, reconnect=False
        )
        mode = AtMostOnce() if self.settled else AtLeastOnce()
        event.container.create_receiver(connection, ADDRESS, options=mode)

    def on_link_opened(self, event):
        print("ready", flush=True)

    def on_message(self, event):
        self.received += 1
        if self.received == self.count:
            print(time.monotonic(), flush=True)
            event.connection.close()


def client(role, url, count, settled):
    """What a client's process does."""
    Container({"sender": Sender, "receiver": Receiver}[role](url, count, settled)).run()


# -- brokers --------------------------------------------------------------------------------------


class Broker:
    """A broker's process; a context manager.

    Args:
        name: `example`, `ours` or `ours, recording`.
        preset: of ours.
        more: arguments of ours.
    """

    def __init__(self, name, preset, more=()):
        self.name = name
        self._folder = tempfile.TemporaryDirectory()
        env = {**os.environ, "PYTHONPATH": str(REPO)}
        began = time.monotonic()
        if name == "example":
            port = free_port()
            self.url = f"amqp://127.0.0.1:{port}"
            command = [sys.executable, str(EXAMPLE), "-a", f"127.0.0.1:{port}"]
        else:
            command = [sys.executable, "-m", "workbench", "serve", "--port", "0"]
            command += ["--preset", preset, "--queue", "bench", *more]
            if "recording" in name:
                command += ["--trace", self._folder.name]
        self.process = subprocess.Popen(
            command, env=env, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        if name != "example":
            self.url = self.process.stdout.readline().strip()
        self.host, port = re.fullmatch(r"amqp://(.+):(\d+)", self.url).groups()
        self.port = int(port)
        while True:
            try:
                socket.create_connection((self.host, self.port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.005)
                if self.process.poll() is not None or time.monotonic() - began > TIMEOUT_S:
                    raise
        self.start_s = time.monotonic() - began

    def cpu_s(self):
        """CPU time used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        """Octets of memory that are its own."""
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return sum(
            int(kib) * 1024 for kib in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE)
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
        self._folder.cleanup()


# -- measuring ------------------------------------------------------------------------------------


def start_client(role, broker, count, settled):
    """Start one client's process."""
    command = [sys.executable, __file__, "--role", role, "--url", broker.url]
    command += ["--messages", str(count)] + ["--settled"] * settled
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def rate(broker, count, settled):
    """Messages per second end to end, and the broker's microseconds of CPU per message."""
    receiver = start_client("receiver", broker, count, settled)
    receiver.stdout.readline()
    before = broker.cpu_s()
    sender = start_client("sender", broker, count, settled)
    began = float(sender.stdout.readline())
    ended = float(receiver.stdout.readline())
    sender.wait(TIMEOUT_S)
    receiver.wait(TIMEOUT_S)
    return count / (ended - began), (broker.cpu_s() - before) / count * 1e6


def rates(names, preset, count, rounds):
    """Measure every broker in turn; print medians and ratios."""
    found = {}
    with contextlib.ExitStack() as stack:
        brokers = [stack.enter_context(Broker(name, preset)) for name in names]
        for number in range(rounds + 1):
            for settled in (True, False):
                for broker in brokers:
                    # The first round warms up: modules, allocators, the interpreter's caches.
                    share = count if number else max(1, count // 10)
                    measured = rate(broker, share, settled)
                    if number:
                        found.setdefault((broker.name, settled), []).append(measured)
    for settled in (True, False):
        print("settled" if settled else "unsettled")
        base = None
        for name in names:
            speed = statistics.median(one for one, _ in found[name, settled])
            cpu = statistics.median(one for _, one in found[name, settled])
            base = base or (speed, cpu)
            print(
                f"  {name:16} {speed:8,.0f} msg/s  {cpu:6.1f} us CPU/message"
                f"   rate {speed / base[0]:.2f}x, CPU {cpu / base[1]:.2f}x of {names[0]}"
            )


def starts(names, preset, rounds):
    """Start-up time until a client can connect."""
    print("start until a client can connect")
    for name in names:
        taken = []
        for _ in range(rounds):
            with Broker(name, preset) as broker:
                taken.append(broker.start_s)
        print(f"  {name:16} {statistics.median(taken) * 1000:6.0f} ms")


def memory(names, preset, connections, links):
    """Memory of idle connections, and of idle links on one connection."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    print(f"memory: {connections} idle connections; then {links} idle senders on 10 of them")
    for name in names:
        with Broker(name, preset) as broker, contextlib.ExitStack() as stack:
            one = BlockingConnection(broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")
            stack.callback(one.close)
            one.create_sender(ADDRESS)
            empty = broker.memory()
            clients = []
            for _ in range(connections):
                clients.append(
                    BlockingConnection(broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")
                )
                stack.callback(clients[-1].close)
            each = (broker.memory() - empty) / connections
            empty = broker.memory()
            for number in range(links):
                clients[number % 10].create_sender(ADDRESS, name=f"link-{number}")
            per_link = (broker.memory() - empty) / links
            print(f"  {name:16} {each / 1024:6.1f} KiB a connection, {per_link / 1024:6.1f} a link")


def main():
    """Run the command line described at the top of this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--preset", default="rmq4.3")
    parser.add_argument("--only", nargs="+", action="extend", choices=PARTS)
    parser.add_argument("--role", choices=("sender", "receiver"), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--settled", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        client(options.role, options.url, options.messages, options.settled)
        return
    names = ["example", "ours", "ours, recording"]
    only = options.only or PARTS
    if "rate" in only:
        rates(names, options.preset, options.messages, options.rounds)
    if "cost" in only:
        starts(names, options.preset, 3)
        memory(names[:2], options.preset, 200, 1_000)


if __name__ == "__main__":
    main()
