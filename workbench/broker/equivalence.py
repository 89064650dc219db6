"""What is declared again has to be as it is: queues and exchanges alike, in RabbitMQ's words."""

from __future__ import annotations

from workbench.queues.arguments import told, told_with_type


def difference(thing: str, what: str, present: object, asked: object) -> str | None:
    """What is wrong with declaring a thing again; None: nothing [`rabbit_misc.erl`].

    Args:
        thing: the queue or exchange, with its name.
        what: the field or argument.
        present: how that is; None if it was not given.
        asked: how it was asked for; None if it was not.
    """
    # A bool is an int in Python; in AMQP it is not.
    if present == asked and isinstance(present, bool) is isinstance(asked, bool):
        return None
    # Two values are told without their types; a value where there is none, with it.
    tell = told_with_type if None in (present, asked) else told
    return (
        f"inequivalent arg '{what}' for {thing} in vhost '/': received {tell(asked)} but current"
        f" is {tell(present)}; legal: declare it with the same, or delete it before"
    )
