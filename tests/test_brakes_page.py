"""The page that compares what holds a sender is made from the presets."""

from dataclasses import replace

from tests.conftest import REPO
from workbench import presets
from workbench.presets import brakes


def test_the_page_is_that_of_the_presets_as_they_are():
    """It is made, and not written."""
    page = (REPO / "docs" / "brakes.md").read_text(encoding="utf-8")
    assert page == brakes.markdown(), "run: python -m workbench.presets.brakes docs/brakes.md"


def test_a_changed_number_changes_its_cell_and_no_other():
    """Each cell comes from fields of the preset; a protocol that is not spoken has none."""
    for name, changes, brake in (
        ("rmq4.3", {"publisher_credit_regrant_at": 20}, "link credit"),
        ("rmq4.3", {"quorum_soft_limit": 5}, "soft limit of quorum queues"),
        ("rmq3.5.5", {"store_credit": 7}, "message store"),
        ("qpid-cpp", {"flow_stop_percent": 55}, "watermarks"),
        ("qpid-cpp", {"default_queue_limit": 9}, "hard limit"),
        ("broker-j", {"flow_resume_limit": 9}, "credit taken away"),
        ("broker-j", {"publisher_credit": 9}, "link credit"),
    ):
        preset = presets.get(name)
        told = zip(brakes.cells(preset), brakes.cells(replace(preset, **changes)), strict=True)
        columns = [one for one, *_ in brakes.COLUMNS]
        differ = [column for column, (a, b) in zip(columns, told, strict=True) if a != b]
        assert differ == [brake]
    assert brakes.cells(presets.get("qpid-cpp"))[0] == "–"


def test_a_release_without_quorum_queues_has_no_soft_limit():
    """They came with 3.8.0, and so did the limit: 3.5.5 held by credit and by its store alone."""
    columns = [one for one, *_ in brakes.COLUMNS]
    told = {
        name: brakes.cells(presets.get(name))[columns.index("soft limit of quorum queues")]
        for name in ("rmq2.0", "rmq3.5.5", "rmq3.8.3", "rmq3.8.4", "blog2024", "rmq4.3")
    }
    assert told == {
        "rmq2.0": "–",
        "rmq3.5.5": "–",
        "rmq3.8.3": "256 commands pending",
        "rmq3.8.4": "32 commands pending",
        "blog2024": "32 commands pending",
        "rmq4.3": "32 commands pending",
    }


def test_every_preset_has_its_line():
    """Those that are added later too."""
    for name in presets.names():
        assert f"\n| `{name}` |" in brakes.markdown()
