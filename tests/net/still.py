"""Servers in the test's own thread, in a time of their own: waiting costs nothing and proves much.

A server's loop runs while the test asks it something, or waits for something on a client's socket.
Its time stands still while there is anything to do, and jumps when there is not.
"""

import asyncio
import contextlib
import random
import socket
import time

from tests.conformance.broker_in_memory import MemorySocket, TimelessLoop
from tests.patience import TIMEOUT_S
from workbench import presets
from workbench.net.forwarder import Forwarder, Target
from workbench.net.listener import Listener
from workbench.net.serve import recording
from workbench.net.server import ServerHandle

TURN_S = 0.001


class StillServer(ServerHandle):
    """A broker, or a proxy before one; a context manager.

    Args:
        preset: a preset or its name.
        forward: the server behind a proxy, on the same loop.
        record: keep a trace.
        more: of the listener.
    """

    def __init__(self, preset="spec", *, forward=None, record=True, **more):
        super().__init__(recording() if record else None)
        self._behind = forward
        self.loop = TimelessLoop() if forward is None else forward.loop
        more["record"] = self.recording.tap if record else None
        if forward is None:
            preset = presets.get(preset) if isinstance(preset, str) else preset
            self.listener = Listener(self.loop, preset, **more)
        else:
            self.listener = Forwarder(self.loop, Target(host="behind", port=1), **more)
            self.listener.connect = self._join

    async def _join(self, make):
        ours, theirs = socket.socketpair()
        await self.loop.connect_accepted_socket(self._behind.listener.make, theirs)
        await self.loop.connect_accepted_socket(make, ours)

    def ask(self, question):
        """Let everything happen that is due, and answer."""
        self.wait(TURN_S)
        return question()

    def wait(self, seconds):
        """Let time pass."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def now(self):
        """Seconds since it was made."""
        return self.loop.time()

    def until(self, condition):
        """Let time pass until it holds."""
        deadline = self.now() + TIMEOUT_S
        while not condition():
            assert self.now() < deadline, f"not within {TIMEOUT_S} s of its time"
            self.wait(TURN_S)

    def dial(self):
        """A socket that is connected to it."""
        ours, theirs = socket.socketpair()
        self.loop.run_until_complete(self.loop.connect_accepted_socket(self.listener.make, theirs))
        return MemorySocket(self.loop, ours)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.run_until_complete(self.listener.stop())
        if self._behind is None:
            self.loop.close()


def dial(server):
    """A socket that is connected to a server of either kind."""
    if isinstance(server, StillServer):
        return server.dial()
    return socket.create_connection((server.host, server.port), timeout=TIMEOUT_S)


def now(server):
    """The server's time, in seconds."""
    return server.now() if isinstance(server, StillServer) else time.monotonic()


def gone(sock):
    """Read until the server closes; give all that it says."""
    sock.settimeout(TIMEOUT_S)
    octets = b""
    with contextlib.suppress(ConnectionResetError):
        while more := sock.recv(65536):
            octets += more
    return octets


def converse_damaged(broker, dial, lines, seed=5):
    """Sixty conversations of these lines, a few octets of each changed; all are closed after it.

    Args:
        broker: where it happens.
        dial: connects a client.
        lines: octets; the first line stays whole.
        seed: which octets.
    """
    chooser = random.Random(seed)
    for _ in range(60):
        damaged = [bytearray(line) for line in lines]
        for _ in range(chooser.choice((1, 2, 5))):
            line = chooser.choice(damaged[1:])
            line[chooser.randrange(len(line))] = chooser.randrange(256)
        client = dial()
        with contextlib.suppress(OSError):  # it may be closed before it has said all
            for line in damaged:
                client.sendall(bytes(line))
                broker.wait(0)
        client.close()
        broker.wait(0)
    broker.wait(60)
