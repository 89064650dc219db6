"""Clients: scripted ones of ours, and the real python-qpid-proton (loaded when it is asked for)."""

from .scripted import ScriptedReceiver, ScriptedSender

__all__ = ["ScriptedReceiver", "ScriptedSender"]
