"""Captures of real brokers, played to ours: what it says is what they said.

To run over more captures: WORKBENCH_CAPTURES=/some/folder pytest tests/frontends/test_replay.py
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.rig import Rig
from workbench import presets
from workbench.amqp10.performatives import Transfer
from workbench.amqp10.settings import SessionSettings
from workbench.trace.pcapng_out import export

from .replay import Replay, manifest_of, preset_of

REPO = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("WORKBENCH_CAPTURES", REPO / "data/captures"))
CAPTURES = sorted(FOLDER.glob("*.pcapng"))
OURS = sorted((REPO / "data/captures").glob("*.pcapng"))
ALL = pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)

A43 = REPO / "data/captures/rmq43_a_publisher_grants.pcapng"
B43 = REPO / "data/captures/rmq43_b_consumer_credit.pcapng"
E43 = REPO / "data/captures/rmq43_e_large_message_split.pcapng"
F43 = REPO / "data/captures/rmq43_f_memory_alarm.pcapng"


@ALL
def test_our_broker_says_what_the_real_one_said(capture: Path) -> None:
    """Kind, order per link and flow-control fields of every frame; what differs has a reason."""
    replay = Replay(capture)
    result = replay.run()
    assert replay.unexplained() == []
    assert replay.unused() == []
    assert result.compared["open"] >= 1
    assert replay.recorder.problems == []


@pytest.mark.parametrize(
    ("capture", "changes"),
    [
        (A43, {"publisher_credit": 171}),
        (A43, {"publisher_credit_regrant_at": 84}),
        (A43, {"incoming_window": 401}),
        (A43, {"incoming_window_regrant_at": 199}),
        (B43, {"initial_delivery_count": 1}),
        (B43, {"writes_defaults": False}),
        (E43, {"transfer_reserve": 1}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else value.stem[:7],
)
def test_a_broker_that_is_off_by_one_is_noticed(capture: Path, changes: dict[str, int]) -> None:
    """A replay that could not fail would show nothing."""
    replay = Replay(capture, replace(presets.get("rmq4.3"), **changes))
    replay.run()
    assert replay.unexplained()


@pytest.mark.parametrize("name", ["spec", "rmq4.0"])
@pytest.mark.parametrize("capture", [A43, B43, F43], ids=lambda path: path.stem[:7])
def test_another_preset_is_noticed(capture: Path, name: str) -> None:
    """4.0 and the specification do not pass for 4.3."""
    replay = Replay(capture, presets.get(name))
    replay.run()
    assert replay.unexplained()


def test_an_alarm_that_is_missing_is_noticed() -> None:
    """The event of the manifest is what closes the window."""
    replay = Replay(F43)
    replay._events.clear()
    replay.run()
    assert any("flow did not come" in text for text in replay.unexplained())


@pytest.mark.parametrize("capture", OURS, ids=lambda path: path.stem)
def test_without_a_manifest_what_happened_is_read_from_the_capture(
    tmp_path: Path, capture: Path
) -> None:
    """Preset, queues, what was and came in them, and alarms: a capture need not be described."""
    copy = tmp_path / capture.name
    copy.write_bytes(capture.read_bytes())
    replay = Replay(copy)
    replay.run()
    assert manifest_of(copy) == {}
    assert replay.unexplained() == []


def test_every_known_difference_is_told_with_its_reason() -> None:
    """docs/fidelity.md lists what the manifests excuse."""
    page = " ".join((REPO / "docs/fidelity.md").read_text(encoding="utf-8").split())
    for capture in sorted((REPO / "data/captures").glob("*.pcapng")):
        for item in manifest_of(capture).get("differences", ()):
            assert item["reason"] in page, capture.stem


def test_events_outside_amqp_are_told_by_name() -> None:
    """A manifest may stall a queue, let it go on, empty or delete it; anything else is refused."""
    replay = Replay(A43)
    replay._declare()
    for what in ("stall", "resume", "purge", "delete"):
        replay._happen({"before": 0, "what": what, "queue": "cap_a"})
    assert list(replay.broker.queues) == ["cap_aq"]
    with pytest.raises(ValueError, match="no event 'explode'; legal: "):
        replay._happen({"before": 0, "what": "explode"})


@pytest.mark.parametrize(
    ("version", "preset"),
    [("4.0.5", "rmq4.0"), ("4.1.0", "rmq4.0"), ("4.3.6", "rmq4.3"), ("4.2.0", "rmq4.3")],
)
def test_the_preset_follows_from_the_version(version: str, preset: str) -> None:
    """4.2 has the numbers of 4.3, as 4.1 has those of 4.0."""
    assert preset_of(version) == preset


@pytest.mark.parametrize("version", ["3.10.8", "", "40.1"])
def test_a_broker_for_which_there_is_no_preset_is_named(version: str) -> None:
    """Differences from another broker would say nothing."""
    with pytest.raises(ValueError, match="manifest"):
        preset_of(version)


def test_an_answer_that_a_closed_window_holds_back_tells_of_more_messages(tmp_path: Path) -> None:
    """A capture of our own: credit 100, window 5, and an echo that waits behind the messages."""
    rig = Rig(presets.get("rmq4.3"), plain_names=False)
    rig.fill("q", 40)
    window = SessionSettings(incoming_window=5, regrant_at=None)
    _, session = rig.raw(session_settings=window)
    link = rig.receiver(session, "/queues/q")
    link.grant(100, echo=True)
    rig.rest()
    capture = tmp_path / "held.pcapng"
    export(rig.recorder.rows, capture)
    replay = Replay(capture)
    assert replay.run().differences == []
    assert replay.result.compared["transfer"] == 5


@pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])
@pytest.mark.parametrize("taken", [1, 300, 800])
@pytest.mark.parametrize("echo", [True, False])
def test_a_client_that_stops_in_the_middle_of_a_stream_is_followed(
    tmp_path: Path, preset: str, taken: int, echo: bool
) -> None:
    """The broker has sent more by the time it reads the stop, and not all: so has ours."""
    rig = Rig(presets.get(preset), latency_us=1500, plain_names=False)
    rig.fill("q", 2000)
    client, session = rig.raw()
    link = rig.receiver(session, "/queues/q")
    link.grant(1900)
    while len(client.frames(Transfer)) < taken:
        assert rig.clock.step()
    link.grant(0, echo=echo)
    rig.rest()
    assert taken < len(client.frames(Transfer)) < 1900
    capture = tmp_path / "stopped.pcapng"
    export(rig.recorder.rows, capture)
    manifest = {"preset": preset, "queues": {"q": {"ready": 2000}}}
    (tmp_path / "stopped.manifest.json").write_text(json.dumps(manifest))
    assert Replay(capture).run().differences == []
