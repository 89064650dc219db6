"""Scenarios, presets and parameter values as they are typed on a command line."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .console import UsageError, add_many, one_line, suggestion

if TYPE_CHECKING:
    import argparse

YES = ("true", "yes", "on", "1")
NO = ("false", "no", "off", "0")


def scenario_named(name: str) -> Any:
    """The scenario of that name.

    Raises:
        CommandError: if there is none; the text names the nearest.
    """
    from workbench.scenarios import registry

    return _named("scenario", name, registry)


def preset_named(name: str) -> Any:
    """The preset of that name; raises as `scenario_named`."""
    from workbench import presets

    return _named("preset", name, presets)


def _named(what: str, name: str, registry: ModuleType) -> Any:
    if name not in registry.names():
        near = suggestion(name, registry.names())
        raise UsageError(f"no {what} {_shown(name)}{near}")
    return registry.get(name)


def preset_configured(name: str, texts: Iterable[str]) -> Any:
    """The preset of that name, with `NAME=VALUE` settings of RabbitMQ's changed.

    Raises:
        CommandError: if there is no such preset or setting, or the value is not legal.
    """
    from workbench import presets

    preset = preset_named(name)
    changed: dict[str, float] = {}
    for text in texts:
        setting, equals, value = text.partition("=")
        try:
            changed[setting.strip()] = presets.number(value if equals else "")
        except ValueError as error:
            raise UsageError(
                f"--config {_shown(text)}: write it as NAME=NUMBER, with one of"
                f" {', '.join(presets.SETTINGS)}; {error}"
            ) from None
    try:
        return presets.configured(preset, changed)
    except ValueError as error:
        raise UsageError(f"--config: {error}") from None


def add_config(parser: argparse.ArgumentParser) -> None:
    """The option that changes settings of RabbitMQ's."""
    add_many(
        parser, "--config", "NAME=N",
        "a setting of RabbitMQ's by its own name, such as max_link_credit=50 or"
        " vm_memory_high_watermark=64MB",
    )  # fmt: skip


def settings(texts: Iterable[str], parameters: Iterable[Any], owner: str) -> dict[str, Any]:
    """`k=v` texts as values of the right type; whether they are in range is checked later.

    Raises:
        CommandError: if one has no `=`, no such parameter, or no value of its kind.
    """
    known = {parameter.name: parameter for parameter in parameters}
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise UsageError(f"{_shown(text)}: write it as name=value")
        if name not in known:
            raise UsageError(f"{owner} has no parameter {_shown(name)}{suggestion(name, known)}")
        found[name] = typed(known[name], value.strip())
    return found


def typed(parameter: Any, text: str) -> Any:
    """A text as a value of the parameter's kind.

    Raises:
        CommandError: if it is none; the text names what is legal.
    """
    kind = parameter.kind.name
    if kind == "WHOLE":
        if text.lower() == "none":
            return None
        if len(text) <= 30:
            try:
                return int(text)
            except ValueError:
                pass
    elif kind == "YES_NO":
        if text.lower() in YES + NO:
            return text.lower() in YES
    else:
        return text
    wrong = "not a whole number" if kind == "WHOLE" else "neither yes nor no"
    raise UsageError(f"{parameter.name}={_shown(text)} is {wrong}; legal: {parameter.legal}")


def _shown(text: str) -> str:
    short = text if len(text) <= 60 else text[:57] + "..."
    return repr(one_line(short))
