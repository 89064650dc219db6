"""`workbench explore`: every schedule of a small link, and the shortest that breaks its rule."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from .console import Progress, UsageError, add_format

HELP = "visit every schedule of a link and find the shortest bad one"
TEXT = """\
Visit every order in which the flows and transfers of one link can be sent and
arrive, breadth first. A state is bad if the sender may send beyond the
furthest limit that was ever granted.

  workbench explore --messages 10 --grants 3,6 --rule spec
  workbench explore --messages 10 --grants 3,6 --rule set --format json

Rules: spec counts from the flow's delivery-count (AMQP 1.0, 2.6.7), set takes
the flow's number as it stands, add adds it, naive subtracts without knowing
that counts wrap around.
"""

BOUNDS = (
    ("--max-states", 1_000_000, "N", "stop at so many states"),
    ("--max-seconds", 30.0, "S", "stop after so long"),
    ("--max-megabytes", 1_000, "MB", "stop at so much memory"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `explore` takes."""
    parser.add_argument("--messages", type=int, default=10, metavar="N", help="of the sender (10)")
    parser.add_argument(
        "--grants", default="3,6", metavar="A,B,...", help="link-credit of each flow (3,6)"
    )
    parser.add_argument("--rule", default="spec", metavar="RULE", help="of the sender (spec)")
    parser.add_argument(
        "--initial-delivery-count", type=int, default=0, metavar="N", help="where both begin (0)"
    )
    for option, most, unit, about in BOUNDS:
        told = f"{about} (%(default)s)"
        parser.add_argument(option, type=type(most), default=most, metavar=unit, help=told)
    add_format(parser)


def command(arguments: argparse.Namespace) -> int:
    """Explore and print."""
    from workbench.sim.explorer import Bounds, explore

    model = _model(arguments)
    bounds = Bounds(
        states=_least("--max-states", arguments.max_states),
        seconds=_least("--max-seconds", arguments.max_seconds, 0),
        octets=_least("--max-megabytes", arguments.max_megabytes) * 1_000_000,
    )
    with Progress("exploring", unit="states") as progress:
        found = explore(model, bounds, now=time.monotonic, progress=progress.at)
    if arguments.format == "json":
        print(json.dumps(as_data(found), indent=1))
    else:
        print(as_text(found))
    return 0


def as_data(found: Any) -> dict[str, Any]:
    """What programs read."""
    return {
        "states": found.states,
        "bad": found.bad,
        "shortest": None if found.shortest is None else list(found.shortest),
        "complete": found.complete,
        "stopped": found.stopped,
        "levels": found.levels(),
    }


def as_text(found: Any) -> str:
    """What people read."""
    extent = "every one there is" if found.complete else found.stopped
    states = "1 state" if found.states == 1 else f"{found.states:,} states"
    lines = [f"{states} ({extent}), {found.bad:,} of them bad"]
    if found.shortest is not None:
        lines.append(f"a shortest bad schedule has {len(found.shortest)} moves:")
        model, state = found.model, found.model.initial
        for move in found.shortest:
            state = model.after(state, move)
            view = model.describe(state)
            lines.append(
                f"  {move:<17} sender: delivery-count {view.snd_delivery_count}, link-credit"
                f" {view.snd_link_credit}; furthest limit {view.furthest_limit}"
            )
        lines.append(
            f"the sender may now send {view.snd_link_credit:,} from {view.snd_delivery_count} on:"
            f" beyond {view.furthest_limit}, and no flow granted more"
        )
    elif found.complete:
        lines.append("no schedule lets the sender send more than was granted: all were visited")
    else:
        lines.append("none was bad among those that were visited; that proves nothing about others")
    return "\n".join(lines)


def _model(arguments: argparse.Namespace) -> Any:
    from workbench.scenarios import ParameterError
    from workbench.scenarios.link_model import LinkModel
    from workbench.scenarios.race import plans_of
    from workbench.scenarios.rules import rule_named

    try:
        plans = plans_of(arguments.grants)
        if any(plan.drain or plan.echo for plan in plans):
            raise UsageError(
                f"--grants {arguments.grants}: numbers only; a schedule has no drain and no echo"
            )
        return LinkModel(
            messages=arguments.messages,
            grants=tuple(plan.link_credit for plan in plans),
            rule=rule_named(arguments.rule).rule,
            initial_delivery_count=arguments.initial_delivery_count,
        )
    except (ParameterError, ValueError) as error:
        raise UsageError(str(error)) from None


def _least(name: str, value: Any, least: int = 1) -> Any:
    if not value >= least:
        raise UsageError(f"{name} {value}: legal is {least} or more")
    return value
