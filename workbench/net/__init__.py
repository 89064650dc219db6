"""Live: the broker behind a listening socket, and the gate for a real client's frames.

The broker is the one of the virtual runs; only its clock and the client's end of the wire differ.
"""

from .frozen import FrozenWire, Held
from .limits import Limits
from .listener import Listener, ListenError
from .server import LiveBroker

__all__ = ["FrozenWire", "Held", "Limits", "ListenError", "Listener", "LiveBroker"]
