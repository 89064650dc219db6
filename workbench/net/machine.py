"""How much memory this machine has, or the container that the process runs in."""

from __future__ import annotations

import os
from pathlib import Path

UNKNOWN = 1 << 30
"""Taken where the system does not tell, as RabbitMQ does (`vm_memory_monitor.erl`)."""

_CGROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  # version 2, version 1


def total_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """The octets of memory that this process may use at most.

    Args:
        cgroup: where a container's limits stand.
    """
    try:
        installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        installed = UNKNOWN
    limits = [installed]
    for name in _CGROUP_LIMITS:
        try:
            text = (cgroup / name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():  # else `max`: no limit
            limits.append(int(text))
    return min(limits)
