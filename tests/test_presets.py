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


def test_what_spec_takes_from_clients_is_what_they_have() -> None:
    """Azure's go-amqp has windows of 5000, opened again at half; the others are Proton's."""
    spec = presets.get("spec")
    assert (spec.client_incoming_window, spec.client_incoming_window_regrant_at) == (5000, 2500)
    assert (spec.incoming_window, spec.window_regrant_at) == (5000, 2500)
    assert spec.outgoing_window == 2147483647
    assert (spec.max_frame_size, spec.client_max_frame_size, spec.channel_max) == (
        32768,
        32768,
        32767,
    )


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


def test_blog2024_is_rmq40_with_the_article_s_set_up_and_nothing_else() -> None:
    """What differs is cited from the article, measured or declared ours: no rule of the broker.

    Three settings are those of the article's release: 4.0.0-beta.6 came before the higher watermark
    and before the bounds on sessions and links.
    """
    blog, base = presets.get("blog2024"), presets.get("rmq4.0")
    differs = {
        item.name: getattr(blog, item.name)
        for item in fields(blog)
        if getattr(blog, item.name) != getattr(base, item.name)
    }
    assert {name: differs.pop(name) for name in ("name", "version")} == {
        "name": "blog2024",
        "version": "4.0.0-beta.6",
    }
    del differs["title"]
    assert differs == {
        "fsync_us": 6_300,
        "session_us": 8,
        "session_ns": 80,
        "queue_enqueue_us": 0,
        "queue_deliver_us": 0,
        "channel_us": 5,
        "client_publish_us": 9,
        "client_ack_us": 3,
        "node_latency_us": 0,
        "wire_latency_us": 0,
        "message_bytes": 12,
        "memory_high_watermark": 0.4,
        "channel_max": 65_535,
        "handle_max": 4_294_967_295,
    }
    sources = {number.name: number.source for number in presets.describe(blog)}
    for name in differs:
        assert "article" in sources[name] or sources[name].startswith(("ours;", "measured: "))


# -- RabbitMQ's own settings ----------------------------------------------------------------------


def test_a_setting_has_rabbitmq_s_default_under_rabbitmq_s_name() -> None:
    """The table of the settings that a person finds in RabbitMQ's configuration."""
    for name in ("rmq4.0", "rmq4.3"):
        assert presets.settings_of(presets.get(name)) == {
            "max_link_credit": 170,
            "max_incoming_window": 400,
            "max_queue_credit": 256,
            "credit_flow_default_credit": 400,
            "msg_store_credit_disc_bound": 4000,
            "msg_store_io_batch_size": 4096 if name == "rmq4.0" else 0,  # removed in 4.1
            "mirroring_flow_control": 1,
            "queue_index_embed_msgs_below": 4096,
            "quorum_commands_soft_limit": 32,
            "channel_max": 2047,
            "frame_max": 131072,
            "max_message_size": 16777216,
            "session_max_per_connection": 64,
            "link_max_per_session": 256,
            "heartbeat": 60,
            "vm_memory_high_watermark": 0.6,
            "vm_memory_high_watermark_paging_ratio": 0,  # 4.x pages nothing for memory's sake
        }


@pytest.mark.parametrize("name", presets.SETTINGS)
def test_a_setting_that_is_changed_is_changed_and_nothing_else(name: str) -> None:
    """Each by itself; what is shown is what was set."""
    preset = presets.get("rmq4.3")
    setting = presets.SETTINGS[name]
    value = min(setting.least + 1000, setting.most)
    if value == setting.shown(preset):
        value = setting.least
    shown = presets.settings_of(presets.configured(preset, {f"rabbit.{name}": value}))
    assert shown == presets.settings_of(preset) | {name: value}


def test_thresholds_follow_their_setting() -> None:
    """Half of it, rounded down, as RabbitMQ divides."""
    preset = presets.configured(
        presets.get("rmq4.3"),
        {"max_link_credit": 11, "max_incoming_window": 9, "credit_flow_default_credit": 9},
    )
    assert preset.process_regrant_after == 4
    assert preset.credit_regrant_at == 5
    assert preset.window_regrant_at == 4
    assert preset.alarm_margin == 9


@pytest.mark.parametrize(
    ("name", "settings", "telling"),
    [
        ("spec", {"max_link_credit": 1}, "preset spec is not RabbitMQ's"),
        ("rmq4.3", {"max_credit": 1}, "no setting 'max_credit' here; legal: max_link_credit"),
        ("rmq4.3", {"max_link_credit": 0}, "max_link_credit is 0; legal: 1 to 2147483647 messages"),
        ("rmq4.3", {"heartbeat": True}, "heartbeat is True; legal: 0 to 65535 s"),
        ("rmq4.3", {"frame_max": 511}, "frame_max is 511; legal: 512"),
        ("rmq4.3", {"frame_max": 0.5}, "frame_max is 0.5; legal: 512"),
        ("rmq4.3", {"vm_memory_high_watermark": 1.5}, "is 1.5; legal: 0 to .* octets, or a frac"),
    ],
)
def test_a_setting_that_cannot_be_says_what_can(name, settings, telling) -> None:
    """One line, and no preset."""
    with pytest.raises(ValueError, match=telling):
        presets.configured(presets.get(name), settings)


@pytest.mark.parametrize(
    ("text", "value"),
    [("170", 170), ("0.6", 0.6), (".4", 0.4), ("64MB", 64_000_000), (" 1 GiB", 1_073_741_824)],
)
def test_a_setting_s_text_may_have_a_unit_or_be_a_fraction(text, value) -> None:
    """As numbers stand in rabbitmq.conf."""
    assert presets.number(text) == value


@pytest.mark.parametrize("text", ["", "-1", "1e3", "64 mb", "0.5MB", "1.5", "many"])
def test_a_setting_s_text_that_is_no_number_says_what_is_legal(text) -> None:
    """One line."""
    with pytest.raises(ValueError, match="legal numbers: a whole one, one with a unit"):
        presets.number(text)


@pytest.mark.parametrize("kind", ["", ".relative", ".absolute"])
def test_the_watermark_may_be_named_as_in_rabbitmq_s_configuration_file(kind) -> None:
    """`vm_memory_high_watermark.absolute = 64MB` there."""
    name = f"vm_memory_high_watermark{kind}"
    preset = presets.configured(presets.get("rmq4.3"), {name: 64_000_000})
    assert preset.memory_high_watermark == 64_000_000


def test_credit_between_processes_by_release() -> None:
    """RabbitMQ's pairs, and the soft limit of quorum queues: facts by version."""
    told = {
        name: (
            (preset.process_credit, preset.process_regrant_after),
            (preset.store_credit, preset.store_regrant_after),
            preset.quorum_soft_limit,
        )
        for name in presets.names()
        if name.startswith("rmq")
        for preset in [presets.get(name)]
    }
    assert {told.pop(name)[0][0] for name in ("rmq1.5", "rmq1.8", "rmq2.0")} == {0}
    assert told == {
        "rmq3.5.5": ((200, 50), (2000, 500), 256),
        "rmq3.8.3": ((400, 200), (4000, 800), 256),
        "rmq3.8.4": ((400, 200), (4000, 800), 32),
        "rmq4.0": ((400, 200), (4000, 800), 32),
        "rmq4.3": ((400, 200), (4000, 800), 32),
    }
    tuned = presets.configured(
        presets.get("rmq3.5.5"),
        {"credit_flow_default_credit": 400, "msg_store_credit_disc_bound": 1000},
    )
    assert (tuned.process_regrant_after, tuned.store_regrant_after) == (100, 250)
    with pytest.raises(ValueError, match=r"RabbitMQ 2\.0\.0 count no credit; legal: .* rmq3\.5\.5"):
        presets.configured(presets.get("rmq2.0"), {"credit_flow_default_credit": 400})


def test_the_memory_alarm_by_release() -> None:
    """Above which part of the memory, and whose: 95 in 100 of the machine's; 40; from 4.0 on 60."""
    assert {
        name: (preset.memory_high_watermark, preset.memory_counts)
        for name in presets.names()
        if (preset := presets.get(name)).conduct == presets.RABBITMQ
    } == {
        "rmq1.5": (0.95, "machine"),
        "blog2008": (0.95, "machine"),
        "rmq1.8": (0.4, "used"),
        "rmq2.0": (0.4, "used"),
        "rmq3.5.5": (0.4, "used"),
        "rmq3.8.3": (0.4, "resident"),
        "rmq3.8.4": (0.4, "resident"),
        "blog2024": (0.4, "resident"),  # 4.0.0-beta.6
        "rmq4.0": (0.6, "resident"),
        "rmq4.3": (0.6, "resident"),
    }


def test_numbers_of_an_amqp_0_9_1_connection_by_release() -> None:
    """frame-max: largest and least; channels; unsent for a channel; seconds it is shown in flow.

    And the heartbeat that it proposes, in seconds, with the largest message, 0 for any.
    """
    assert {
        name: (
            preset.max_frame_size,
            preset.frame_min_091,
            preset.channel_max_091,
            preset.unsent_limit,
            preset.flow_shown_us / 1e6,
            preset.idle_time_out_ms / 500,
            preset.max_message_size,
        )
        for name in presets.names(presets.AMQP_0_9_1)
        if (preset := presets.get(name)).conduct == presets.RABBITMQ
    } == {
        **dict.fromkeys(
            ("rmq1.5", "blog2008", "rmq1.8", "rmq2.0"), (131072, 4096, 0, 100, 5, 0, 0)
        ),
        "rmq3.5.5": (131072, 4096, 0, 200, 5, 60, 2_147_383_648),
        **dict.fromkeys(("rmq3.8.3", "rmq3.8.4"), (131072, 4096, 2047, 200, 0, 60, 134_217_728)),
        **dict.fromkeys(("rmq4.0", "blog2024"), (131072, 4096, 2047, 200, 0, 60, 16_777_216)),
        "rmq4.3": (131072, 8192, 2047, 200, 0, 60, 16_777_216),
    }


def test_e20_e24_mirrors_and_messages_in_the_index_by_release() -> None:
    """Below how many octets a message is kept in the index, since 3.5.0; mirrors, 2.6.0 to 3.13."""
    found = {
        name: (preset.index_embeds_below, preset.mirrors)
        for name in presets.names()
        if name.startswith("rmq")
        for preset in [presets.get(name)]
    }
    assert found == {
        **dict.fromkeys(("rmq1.5", "rmq1.8", "rmq2.0"), (0, False)),
        **dict.fromkeys(("rmq3.5.5", "rmq3.8.3", "rmq3.8.4"), (4_096, True)),
        **dict.fromkeys(("rmq4.0", "rmq4.3"), (4_096, False)),
    }


def test_e22_the_batch_of_positions_grew_and_went() -> None:
    """2048 in 3.5.5, 4096 from 3.6.7 on, removed in 4.1; what it was for went with 3.x."""
    found = {
        name: (presets.get(name).store_io_batch, presets.get(name).paging_ratio)
        for name in ("rmq3.5.5", "rmq3.8.3", "rmq3.8.4", "rmq4.0", "rmq4.3")
    }
    assert found == {
        "rmq3.5.5": (2_048, 0.5),
        "rmq3.8.3": (4_096, 0.5),
        "rmq3.8.4": (4_096, 0.5),
        "rmq4.0": (4_096, 0.0),
        "rmq4.3": (0, 0.0),
    }


def test_a_whole_number_may_be_given_with_a_point() -> None:
    """The broker counts with it, and 170.0 is no credit on a wire."""
    preset = presets.configured(presets.get("rmq4.3"), {"max_link_credit": 200.0})
    assert (preset.publisher_credit, type(preset.publisher_credit)) == (200, int)
    shared = presets.configured(preset, {"vm_memory_high_watermark": 0.6})
    assert shared.memory_high_watermark == 0.6
