"""AMQP 0-9-1 without I/O: both ends of a connection, and what a watcher of one can know.

Octets to frames and back in `frame` (with `codec`, made from pamqp's tables, and `values`), a
connection in `connection`, its channels in `channel`, what a channel counts in `counters`, all that
from outside in `observer`. Sections in square brackets are those of the specification's
*AMQP 0-9-1*, numbers with a class and a method those of its generated part.
"""
