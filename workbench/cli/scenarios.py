"""`workbench scenarios`: what can be run, with its parameters and acts."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from .choosing import preset_named, scenario_named
from .console import add_format, as_json

HELP = "list what can be run, with parameters and actions"
TEXT = """\
List the scenarios: what each is about, its parameters with range, unit and
default, and the acts that a learner can do in it. Defaults are those of a
preset.

  workbench scenarios
  workbench scenarios credit --format json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `scenarios` takes."""
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="only this one")
    parser.add_argument("--preset", default="spec", metavar="P", help="whose defaults (spec)")
    add_format(parser)


def command(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from workbench.scenarios import registry

    preset = preset_named(arguments.preset)
    names = registry.names() if arguments.scenario is None else [arguments.scenario]
    listed = [described(scenario_named(name), preset) for name in names]
    if arguments.format == "json":
        print(as_json(listed, indent=1))
    else:
        print("\n\n".join(as_text(scenario) for scenario in listed))
    return 0


def described(scenario: Any, preset: Any) -> dict[str, Any]:
    """A scenario as plain values."""
    defaults = scenario.defaults(preset)
    return {
        "name": scenario.name,
        "title": scenario.title,
        "doc": " ".join(scenario.doc.split()),
        "preset": preset.name,
        "parameters": [
            {**_parameter(parameter), "default": defaults[parameter.name]}
            for parameter in scenario.parameters
        ],
        "acts": [
            {
                "name": act.name,
                "doc": " ".join(act.doc.split()),
                "arguments": [
                    {**_parameter(argument), "required": argument.required}
                    for argument in act.parameters
                ],
            }
            for act in scenario.actions
        ],
    }


def _parameter(parameter: Any) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "doc": " ".join(parameter.doc.split()),
        "legal": parameter.legal,
        "unit": parameter.unit,
        "minimum": parameter.minimum,
        "maximum": parameter.maximum,
        "choices": list(parameter.choices),
    }


def as_text(scenario: dict[str, Any]) -> str:
    """A scenario for people."""
    lines = _wrapped(f"{scenario['name']}: {scenario['title']}", 0) + _wrapped(scenario["doc"], 2)
    lines += ["", f"  parameters (defaults of preset {scenario['preset']})"]
    for parameter in scenario["parameters"]:
        default = parameter["default"]
        shown = "" if default is None else f" [{default}]"
        lines += _wrapped(f"{parameter['name']}{shown}: {parameter['legal']}", 4)
        lines += _wrapped(parameter["doc"], 8)
    lines += ["", "  actions"]
    for act in scenario["acts"]:
        taken = ", ".join(
            argument["name"] if argument["required"] else f"[{argument['name']}]"
            for argument in act["arguments"]
        )
        lines += _wrapped(f"{act['name']}({taken})", 4)
        lines += _wrapped(act["doc"], 8)
    return "\n".join(lines)


def _wrapped(text: str, indent: int) -> list[str]:
    margin = " " * indent
    return textwrap.wrap(
        text, 79, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False
    )
