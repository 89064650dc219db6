"""RabbitMQ's own settings, by the names that its configuration has for them.

In `advanced.config` they stand under the application `rabbit`; a setting given here makes a changed
copy of a preset. A threshold that RabbitMQ works out of a setting follows it: credit is granted
again at half of `max_link_credit`, the window opens at half of `max_incoming_window`. Of a pair in
RabbitMQ, such as `credit_flow_default_credit`, the first number is given; the second is the same
part of it as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .specification import INT_MAX, RABBITMQ, UINT_MAX, Preset

_LARGEST_CREDIT = INT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting of RabbitMQ's.

    Attributes:
        name: under the application `rabbit`.
        unit: what it counts.
        least, most: the legal range.
        changes: the preset's fields that follow from a value, and how they were before.
        shown: the setting's value in a preset.
        fraction: a number below 1 is legal, and need not be whole.
    """

    name: str
    unit: str
    least: int
    most: int
    changes: Callable[[Any, Preset], Mapping[str, float]]
    shown: Callable[[Preset], float]
    fraction: bool = False

    def allows(self, value: object) -> bool:
        """Whether it may have this value."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if isinstance(value, float) and not value.is_integer():
            return self.fraction and 0 < value < 1
        return self.least <= value <= self.most


def _plain(name: str, field: str, unit: str, least: int, most: int) -> Setting:
    return Setting(
        name=name,
        unit=unit,
        least=least,
        most=most,
        changes=lambda value, _: {field: value},
        shown=lambda preset: int(getattr(preset, field)),
    )


def _one_less(name: str, field: str, unit: str, most: int) -> Setting:
    """A number of things whose highest number is one less."""
    return Setting(
        name=name,
        unit=unit,
        least=1,
        most=most,
        changes=lambda value, _: {field: value - 1},
        shown=lambda preset: int(getattr(preset, field)) + 1,
    )


def _pair(name: str, of: str) -> Setting:
    """Credit between processes: how much there is first, and how much each grant gives."""
    credit, regrant = f"{of}_credit", f"{of}_regrant_after"

    def changes(value: int, preset: Preset) -> Mapping[str, float]:
        if not getattr(preset, credit):
            raise ValueError(
                f"{name}: processes of {preset.title} count no credit; legal: a preset from"
                " rmq3.5.5 on"
            )
        part = getattr(preset, regrant) / getattr(preset, credit)
        return {credit: value, regrant: max(1, int(value * part))}

    return Setting(
        name=name,
        unit="messages",
        least=2,
        most=_LARGEST_CREDIT,
        changes=changes,
        shown=lambda preset: int(getattr(preset, credit)),
    )


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        _plain("max_link_credit", "publisher_credit", "messages", 1, _LARGEST_CREDIT),
        Setting(
            name="max_incoming_window",
            unit="transfer frames",
            least=1,
            most=_LARGEST_CREDIT,
            changes=lambda value, _: {"incoming_window": value, "alarm_margin": value},
            shown=lambda preset: preset.incoming_window,
        ),
        _plain("max_queue_credit", "max_queue_credit", "messages", 1, _LARGEST_CREDIT),
        _pair("credit_flow_default_credit", "process"),
        _pair("msg_store_credit_disc_bound", "store"),
        _plain("msg_store_io_batch_size", "store_io_batch", "messages", 0, _LARGEST_CREDIT),
        Setting(
            name="mirroring_flow_control",
            unit="(1 for true, 0 for false)",
            least=0,
            most=1,
            changes=lambda value, _: {"mirrors_spend_credit": bool(value)},
            shown=lambda preset: int(preset.mirrors_spend_credit),
        ),
        _plain("queue_index_embed_msgs_below", "index_embeds_below", "octets", 0, UINT_MAX),
        _plain("quorum_commands_soft_limit", "quorum_soft_limit", "commands", 1, _LARGEST_CREDIT),
        _plain("channel_max", "channel_max_091", "channels", 0, 65535),
        _plain("frame_max", "max_frame_size", "octets", 512, UINT_MAX),
        _plain("max_message_size", "max_message_size", "octets", 1, UINT_MAX),
        _one_less("session_max_per_connection", "channel_max", "sessions", 65536),
        _one_less("link_max_per_session", "handle_max", "links", UINT_MAX),
        Setting(
            name="heartbeat",
            unit="s",
            least=0,
            most=65535,
            changes=lambda value, _: {"idle_time_out_ms": value * 500},
            shown=lambda preset: preset.idle_time_out_ms // 500,
        ),
        Setting(
            name="vm_memory_high_watermark",
            unit="octets, or a fraction of the memory such as 0.6",
            least=0,
            most=2**63 - 1,
            changes=lambda value, _: {"memory_high_watermark": value},
            shown=lambda preset: preset.memory_high_watermark,
            fraction=True,
        ),
        Setting(
            name="vm_memory_high_watermark_paging_ratio",
            unit="of the watermark; a fraction such as 0.5",
            least=0,
            most=1,
            changes=lambda value, _: {"paging_ratio": value},
            shown=lambda preset: preset.paging_ratio,
            fraction=True,
        ),
    )
}


_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def number(text: str) -> float:
    """The number that a setting's text means: `170`, `0.6`, or octets with a unit, `64MB`.

    Raises:
        ValueError: it means none; the error says what is legal.
    """
    found = re.fullmatch(r"\s*([0-9]{1,18}|0?\.[0-9]{1,9})\s*([kMGi]*B)?\s*", text)
    if found is None or (found[2] and (found[2] not in _UNITS or "." in found[1])):
        raise ValueError(
            f"legal numbers: a whole one, one with a unit ({', '.join(_UNITS)}), or a fraction"
            " such as 0.6"
        )
    if "." in found[1]:
        return float(found[1])
    return int(found[1]) * _UNITS.get(found[2] or "", 1)


def configured(preset: Preset, settings: Mapping[str, float]) -> Preset:
    """A copy of a RabbitMQ preset with some of its settings changed.

    Args:
        preset: one of RabbitMQ's, or a copy.
        settings: values by RabbitMQ's name, with or without `rabbit.` before it.

    Raises:
        ValueError: for a preset that is not RabbitMQ's, an unknown name, or a value out of range;
            the text says what is legal.
    """
    if settings and preset.conduct != RABBITMQ:
        raise ValueError(
            f"{', '.join(settings)}: RabbitMQ has such settings, and preset {preset.name} is not"
            " RabbitMQ's; legal: a preset whose name begins with rmq"
        )
    changes: dict[str, float] = {}
    for given, value in settings.items():
        # In rabbitmq.conf the watermark is written with its kind: the value says the same.
        name = re.sub(r"^rabbit\.|(?<=_high_watermark)\.(relative|absolute)$", "", given)
        setting = SETTINGS.get(name)
        if setting is None:
            raise ValueError(
                f"RabbitMQ has no setting {given!r} here; legal: {', '.join(SETTINGS)}"
            )
        if not setting.allows(value):
            raise ValueError(
                f"{name} is {value!r}; legal: {setting.least} to {setting.most} {setting.unit}"
            )
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        changes.update(setting.changes(value, preset))
    return replace(preset, **changes)  # type: ignore[arg-type]


def settings_of(preset: Preset) -> dict[str, float]:
    """Every setting with its value in a preset."""
    return {name: setting.shown(preset) for name, setting in SETTINGS.items()}
