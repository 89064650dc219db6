"""What lesson 11 asks, checks and needs: the notebook imports it by name."""

from __future__ import annotations

from . import client_check as check
from . import client_predict as predict
from .client_runs import fill, heartbeats

__all__ = ["check", "fill", "heartbeats", "predict"]
