"""The scenarios there are, by name."""

from __future__ import annotations

from .declare import Scenario

_SCENARIOS: dict[str, Scenario] = {}


def register(scenario: Scenario) -> Scenario:
    """Make a scenario known under its name.

    Raises:
        ValueError: if another one has that name.
    """
    if _SCENARIOS.get(scenario.name, scenario) is not scenario:
        raise ValueError(f"there is a scenario {scenario.name!r} already")
    _SCENARIOS[scenario.name] = scenario
    return scenario


def get(name: str) -> Scenario:
    """The scenario of that name.

    Raises:
        ValueError: if there is none; the text lists the names.
    """
    try:
        return _SCENARIOS[name]
    except KeyError:
        listed = ", ".join(_SCENARIOS) or "none"
        raise ValueError(f"no scenario {name!r}; there are: {listed}") from None


def names() -> tuple[str, ...]:
    """Names of all scenarios, in order of registration."""
    return tuple(_SCENARIOS)
