"""Every default number of a run, each with its unit, its source and what it means.

A preset is a frozen dataclass; a run takes all its numbers from one. A field says in its metadata
where its number comes from, and a preset that departs from another overrides the field together
with its source. `dataclasses.replace(get("spec"), incoming_window=8)` gives a changed copy.

Sources: `spec` is AMQP 1.0 (OASIS, 2012) with the clause; `AMQP 0-9-1` is that specification (2008)
with its section; `Proton` is Qpid Proton 0.40; `go-amqp`
is Azure/go-amqp; `article` is the RabbitMQ team's "Ten Benefits of AMQP 1.0 Flow Control";
`RabbitMQ NAME` is a setting of RabbitMQ's application `rabbit`, by the name that its configuration
has for it; `rabbit_...` is a module of its source; `capture` is one of a real broker in
`data/captures`; `measured` was tried on that broker; `ours` is this project's choice, with the
reason in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from workbench.notebook import WrongValueError

from .blog import Blog2024
from .configuration import SETTINGS, Setting, configured, number, settings_of
from .early import Blog2008, RabbitMq15, RabbitMq18, RabbitMq20
from .qpid import BrokerJ, Qpid, QpidCpp
from .rabbitmq import RabbitMq40, RabbitMq43, RabbitMq355, RabbitMq383, RabbitMq384
from .specification import (
    AMQP_0_9_1,
    AMQP_0_10,
    AMQP_1_0,
    BROKER_J,
    INT_MAX,
    RABBITMQ,
    SPEC,
    UINT_MAX,
    Preset,
)

__all__ = [
    "AMQP_0_9_1",
    "AMQP_0_10",
    "AMQP_1_0",
    "BROKER_J",
    "INT_MAX",
    "RABBITMQ",
    "SETTINGS",
    "SPEC",
    "UINT_MAX",
    "Blog2008",
    "Blog2024",
    "BrokerJ",
    "Number",
    "Preset",
    "Qpid",
    "QpidCpp",
    "RabbitMq15",
    "RabbitMq18",
    "RabbitMq20",
    "RabbitMq40",
    "RabbitMq43",
    "RabbitMq355",
    "RabbitMq383",
    "RabbitMq384",
    "Setting",
    "configured",
    "describe",
    "get",
    "names",
    "number",
    "settings_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of a preset, as `describe` lists it.

    Attributes:
        name: the preset's field.
        value: its value in that preset.
        unit: what it counts.
        source: where the number comes from, or `changed` if it is not the preset's own any more.
        doc: what it does.
    """

    name: str
    value: int | bool | None
    unit: str
    source: str
    doc: str


_PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(),
        RabbitMq43(),
        RabbitMq40(),
        Blog2024(),
        RabbitMq384(),
        RabbitMq383(),
        RabbitMq355(),
        RabbitMq20(),
        RabbitMq18(),
        RabbitMq15(),
        Blog2008(),
        QpidCpp(),
        BrokerJ(),
    )
}


def names(protocol: str | None = None) -> tuple[str, ...]:
    """Names of the presets there are: all, or those that are models of a protocol."""
    return tuple(
        name
        for name, preset in _PRESETS.items()
        if protocol is None or protocol in preset.protocols
    )


def get(name: str) -> Preset:
    """The preset of that name.

    Raises:
        WrongValueError: if there is none; the text lists the names.
    """
    if not isinstance(name, str) or name not in _PRESETS:
        raise WrongValueError(f"no preset {name!r}; there are: {', '.join(_PRESETS)}")
    return _PRESETS[name]


def describe(preset: Preset) -> tuple[Number, ...]:
    """Every number of a preset with unit, source and meaning, in order of declaration."""
    declared = {item.name: item.metadata for item in fields(Preset)}
    listed = []
    for item in fields(preset):
        about = {**declared.get(item.name, {}), **item.metadata}
        if not about:
            continue
        value = getattr(preset, item.name)
        source = about["source"]
        if value != item.default:
            source = f"changed from {item.default} ({source})"
        listed.append(
            Number(
                name=item.name,
                value=value,
                unit=about["unit"],
                source=source,
                doc=about["doc"],
            )
        )
    return tuple(listed)
