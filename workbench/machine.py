"""What the machine gives this process: memory, or a container's share of it, and open files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

OPEN_FILES = 4_096
"""Of a server: two for each client of a proxy, and some more."""

_CGROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # version 2, version 1


def total_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int | None:
    """The octets of memory that this process may use at most; None where the system does not tell.

    Args:
        cgroup: where a container's limits stand.
    """
    amounts = []
    with contextlib.suppress(AttributeError, OSError, ValueError):  # not there on Windows
        amounts.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in _CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or `max`: no limit
            amounts.append(int((cgroup / name).read_text(encoding="ascii")))
    return min(amounts, default=None)


def raise_open_files() -> None:
    """Most systems begin with 1,024, and then nobody is told why no more clients are let in."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows; or not allowed
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
