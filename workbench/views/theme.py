"""Colours, shapes and words that every view shares.

Three rules: no meaning rests on colour alone (each colour comes with a shape, a dash pattern or a
word); colours are Okabe and Ito's, told apart by colour-blind eyes; a name here is drawn the same
way on the stage, in the charts and in the static page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from workbench.languages import phrase
from workbench.trace import brakes, clauses

say = partial(phrase, "scenes")

INK = "#7d8590"
"""For marks and their outlines: seen on a light page and on a dark one."""
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#6b7280"

SENDER = BLUE
RECEIVER = VERMILLION


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeStyle:
    """How an interval in which this brake holds the sender is shaded.

    Attributes:
        colour: fill, drawn translucent.
        hatch: Bokeh's name of the hatch pattern, so that grey prints tell brakes apart.
    """

    colour: str
    hatch: str


BRAKE_STYLES = {
    brakes.NO_MESSAGE: BrakeStyle(colour=GREY, hatch="dot"),
    brakes.UNCONFIRMED: BrakeStyle(colour=PURPLE, hatch="cross"),
    brakes.LINK_CREDIT: BrakeStyle(colour=ORANGE, hatch="right_diagonal_line"),
    brakes.PREFETCH: BrakeStyle(colour=ORANGE, hatch="left_diagonal_line"),
    brakes.QPID_WINDOW: BrakeStyle(colour=ORANGE, hatch="horizontal_line"),
    brakes.CREDIT_FLOW: BrakeStyle(colour=VERMILLION, hatch="vertical_line"),
    brakes.ALARM: BrakeStyle(colour=VERMILLION, hatch="diagonal_cross"),
    brakes.SESSION_WINDOW: BrakeStyle(colour=SKY, hatch="left_diagonal_line"),
    brakes.TCP: BrakeStyle(colour=BLUE, hatch="horizontal_dash"),
}


def clause_title(clause: str) -> str:
    """The section's title in the standard, or a broker's own rule in words; empty if unknown."""
    if ":" in clause:
        preset, _, rule = clause.partition(":")
        return say("clause.of-preset", rule=rule.replace("-", " "), preset=preset)
    return clauses.title(clause) or ""
