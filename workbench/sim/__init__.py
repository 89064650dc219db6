"""The simulator: a virtual clock, wires with gates, actors, and taps that observe them."""

from .actor import Actor, CreditWatch
from .clock import Clock, ClockError, Priority, Timer, VirtualClock
from .credit_flow import CreditFlow
from .lanes import Direction, End, Flight, WireError
from .tap import NO_NOTES, Ledger, NoTap, Notes, Tap
from .wire import Wire

__all__ = [
    "NO_NOTES",
    "Actor",
    "Clock",
    "ClockError",
    "CreditFlow",
    "CreditWatch",
    "Direction",
    "End",
    "Flight",
    "Ledger",
    "NoTap",
    "Notes",
    "Priority",
    "Tap",
    "Timer",
    "VirtualClock",
    "Wire",
    "WireError",
]
