"""The table of features: each is held by a test that is there, or has a reason."""

import re

from tests.conftest import REPO

TABLE = REPO / "docs" / "features.md"
ROW = re.compile(
    r"^\| (\d+) \| ([^|]+) \| (?:\[([^]]+)\]\(\.\./([^)]+)\))? *\| ([^|]*)\|$", re.MULTILINE
)


def test_every_feature_is_held_by_a_test_or_has_a_reason():
    """Numbered without gaps; the link leads to a test of that name."""
    rows = ROW.findall(TABLE.read_text("utf-8"))
    assert [int(number) for number, *_ in rows] == list(range(1, 74))
    for number, feature, name, path, reason in rows:
        assert path or reason.strip(), (number, feature)
        if path:
            file = REPO / path
            assert file.is_file(), path
            if name.startswith("test_") and not name.endswith(".py"):
                assert f"def {name}(" in file.read_text("utf-8"), (number, name)
