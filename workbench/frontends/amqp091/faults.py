"""What a client has asked for and does not get, as the reply code that says so."""

from __future__ import annotations

from workbench.amqp091.errors import ReplyCode


class RefusedError(Exception):
    """A method that is not obeyed; the code says whether the channel or the connection ends.

    Attributes:
        code: the reply code.
    """

    def __init__(self, code: ReplyCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def unimplemented() -> RefusedError:
    """A broker of this version never asks for what the client answers."""
    return RefusedError(ReplyCode.COMMAND_INVALID, "unimplemented method")


def no_queue(name: str) -> RefusedError:
    """There is no queue of that name."""
    return RefusedError(ReplyCode.NOT_FOUND, f"no queue '{name}' in vhost '/'")


def no_exchange(name: str) -> RefusedError:
    """There is no exchange of that name."""
    return RefusedError(ReplyCode.NOT_FOUND, f"no exchange '{name}' in vhost '/'")
