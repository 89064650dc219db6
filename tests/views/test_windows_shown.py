"""A stepper may show session windows from the beginning; the document says so, and stays valid."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from workbench.scenarios import run
from workbench.views.stepper_widget import stepper

SCHEMA = Path(__file__).resolve().parents[2] / "workbench/views/stepper_doc.schema.json"


@pytest.mark.parametrize("windows", [False, True])
def test_windows_are_shown_where_it_was_asked_for(windows):
    """`more_open` is there, or is left out; the schema allows both and no other value."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    doc = stepper(run("windows"), windows=windows).doc
    jsonschema.validate(doc, schema)
    assert doc.get("more_open", False) is windows
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**doc, "more_open": "yes"}, schema)
