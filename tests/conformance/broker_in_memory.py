"""The live broker for a scenario, in this thread and in a time of its own.

All of it is the code that `serve` runs: its asyncio loop, connections, wires and timers. Two things are not real. A
client is one end of a pair of sockets, so that nothing is ever under way between the two. And the loop's clock
stands still while there is anything to do; when there is not, it jumps to what is due next. So a scenario may wait
for silence without waiting, and a busy machine changes nothing.
"""

import asyncio
import contextlib
import selectors
import socket

from workbench import presets
from workbench.net.listener import Listener

CHUNK = 1 << 20


class TimelessSelector(selectors.DefaultSelector):
    """Never waits: what the loop would have waited is added to `now`."""

    now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("nothing is due, and nobody will send anything")
            self.now += max(timeout, 0)
        return ready


class TimelessLoop(asyncio.SelectorEventLoop):
    """An event loop in the time of its selector."""

    def __init__(self):
        self.selector = TimelessSelector()
        super().__init__(self.selector)

    def time(self):
        return self.selector.now


class MemorySocket:
    """The client's end of a connection: a socket that lets the broker work while it waits."""

    def __init__(self, loop, end):
        self._loop = loop
        self._end = end
        self._timeout = 0.0
        end.setblocking(False)

    def settimeout(self, timeout):
        """How long to wait."""
        self._timeout = timeout

    def send(self, octets):
        """Send what there is room for.

        Raises:
            BlockingIOError: there is none.
        """
        return self._end.send(octets)

    def sendall(self, octets):
        """Send all of it."""
        rest = memoryview(octets)
        while rest:
            try:
                rest = rest[self._end.send(rest) :]
            except BlockingIOError:
                self._wait(self._loop.add_writer, self._loop.remove_writer)

    def recv(self, most):
        """Octets, or none if the broker has closed."""
        with contextlib.suppress(BlockingIOError):
            return self._end.recv(most)
        self._wait(self._loop.add_reader, self._loop.remove_reader)
        with contextlib.suppress(BlockingIOError):
            return self._end.recv(most)
        raise TimeoutError

    def shutdown(self, how):
        """Say that no more will be sent, or read."""
        self._end.shutdown(how)

    def close(self):
        """Close it."""
        self._end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _wait(self, watch, forget):
        """Let the broker work until the socket is ready or the time is over."""
        over = self._loop.call_later(self._timeout, self._loop.stop)
        watch(self._end, self._loop.stop)
        self._loop.run_forever()
        forget(self._end)
        over.cancel()


class BrokerInMemory:
    """A live broker to which a scenario can connect; a context manager.

    Attributes:
        failures: exceptions that the broker's code let escape.
    """

    def __init__(self, preset):
        self._loop = TimelessLoop()
        self._listener = Listener(self._loop, presets.get(preset))
        self.failures = self._listener.failures

    def connect(self):
        """A socket that is connected to it."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)
        self._loop.run_until_complete(self._loop.connect_accepted_socket(self._listener.make, theirs))
        return MemorySocket(self._loop, ours)

    def now(self):
        """Seconds since it was made."""
        return self._loop.time()

    def wait(self, seconds):
        """Let time pass."""
        self._loop.run_until_complete(asyncio.sleep(seconds))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.run_until_complete(self._listener.stop())
        self._loop.close()
