"""What the machine gives: memory, a container's share of it, and open files."""

import pytest

from workbench.machine import OPEN_FILES, total_memory
from workbench.net import LiveBroker


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"memory.max": "max\n"}, None),
        ({"memory.max": "67108864\n"}, 67108864),
        ({"memory/memory.limit_in_bytes": "134217728\n"}, 134217728),
    ],
)
def test_a_container_s_limit_counts_where_it_is_below_the_machine_s_memory(
    tmp_path, files, expected
):
    """Versions 1 and 2 of Linux's control groups."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    machine = total_memory(tmp_path / "none")
    assert machine > 128 * 1024 * 1024
    assert total_memory(tmp_path) == (expected or machine)


def test_whoever_starts_a_server_may_have_its_clients():
    """Most systems begin with 1,024 open files; a notebook needs as many as the command."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (600, before[1]))
    try:
        with LiveBroker():
            most = before[1] if before[1] != resource.RLIM_INFINITY else OPEN_FILES
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(OPEN_FILES, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
