"""Live: the broker behind a listening socket, and the gate for a real client's frames.

The broker is the one of the virtual runs; only its clock and the client's end of the wire differ.
"""

from .frozen import FrozenWire, GatePicture, Held, WirePicture
from .limits import Limits
from .listener import Listener
from .server import LiveBroker, LiveServer
from .socket_server import ListenError

__all__ = [
    "FrozenWire",
    "GatePicture",
    "Held",
    "Limits",
    "ListenError",
    "Listener",
    "LiveBroker",
    "LiveServer",
    "WirePicture",
]
