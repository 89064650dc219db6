"""The simulator: a virtual clock, wires with gates, actors, and taps that observe them."""

from .actor import Actor
from .clock import ClockError, Priority, Timer, VirtualClock
from .lanes import Direction, End, Flight, WireError
from .tap import NoTap, Note, Tap, Taps
from .wire import Wire

__all__ = [
    "Actor",
    "ClockError",
    "Direction",
    "End",
    "Flight",
    "NoTap",
    "Note",
    "Priority",
    "Tap",
    "Taps",
    "Timer",
    "VirtualClock",
    "Wire",
    "WireError",
]
