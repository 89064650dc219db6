"""A port for a server that is told one."""

import random
import socket
from contextlib import suppress

CHOSEN = range(10_000, 32_768)
"""Below those that a system gives away by itself, on Linux, macOS and Windows."""


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now.

    Tests call it until its server answers. One that the system may give away could be another
    test's broker's by then, which would meet a client that is not its own.
    """
    while True:
        port = random.SystemRandom().choice(CHOSEN)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
