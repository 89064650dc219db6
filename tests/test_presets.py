"""Presets: every number has a unit, a source and a meaning."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from workbench import presets


@pytest.mark.parametrize("name", presets.names())
def test_every_number_names_its_source_unit_and_meaning(name: str) -> None:
    """A number without a source is not allowed into a preset."""
    preset = presets.get(name)
    described = {number.name: number for number in presets.describe(preset)}
    for item in fields(preset):
        if isinstance(getattr(preset, item.name), str | tuple):
            continue  # names, and what an open tells
        number = described[item.name]
        assert number.value == getattr(preset, item.name)
        assert number.unit and number.source and number.doc


def test_a_preset_cannot_be_changed_but_copied_with_a_change() -> None:
    """A run is a function of its preset, so a preset is a value."""
    spec = presets.get("spec")
    with pytest.raises(FrozenInstanceError):
        spec.incoming_window = 1  # type: ignore[misc]
    changed = replace(spec, incoming_window=8)
    assert changed.incoming_window == 8
    assert presets.get("spec").incoming_window == spec.incoming_window


def test_a_changed_number_does_not_claim_the_old_source() -> None:
    """Whoever changes a number reads that it was changed, and from what."""
    spec = presets.get("spec")
    changed = {n.name: n for n in presets.describe(replace(spec, incoming_window=8))}
    assert changed["incoming_window"].source.startswith(f"changed from {spec.incoming_window} (")


def test_an_unknown_preset_is_refused_with_the_known_names() -> None:
    """The message says what would be legal."""
    with pytest.raises(ValueError, match=r"no preset 'rmq9'; there are: spec"):
        presets.get("rmq9")


def test_the_specifications_own_limits_hold() -> None:
    """Frames of 512 octets must be accepted [2.7.1]; serial numbers have 32 bits."""
    for name in presets.names():
        preset = presets.get(name)
        assert preset.max_frame_size >= 512
        assert preset.client_max_frame_size >= 512
        assert 0 <= preset.initial_delivery_count <= presets.UINT_MAX
        assert 0 <= preset.initial_next_outgoing_id <= presets.UINT_MAX
