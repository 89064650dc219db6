"""How a get with a time-out must end, worked out beside the runs."""

from workbench.peers.getter import Ending


def expected_ending(
    *, timeout_us: int, latency_us: int, there_us: int | None, deliver_us: int
) -> Ending:
    """How a get with a time-out ends, worked out instead of played.

    The drain arrives at `timeout_us + latency_us`. A message that is in the queue by then is sent;
    if the queue is empty, the credit is given back.

    Args:
        timeout_us: from the grant to the drain.
        latency_us: of the wire, each way.
        there_us: when the first message is in the queue, counted from the grant; 0 or less if it
            was there before, None if none comes.
        deliver_us: how long the queue takes to hand it to the link.
    """
    if there_us is None or there_us > timeout_us + latency_us:
        return Ending.NOTHING
    arrives_us = max(there_us, latency_us) + deliver_us + latency_us
    return Ending.MESSAGE if arrives_us <= timeout_us else Ending.LATE_MESSAGE
