"""AMQP Flow Workbench: drive flow control by hand and see both ends, frame by frame.

A lesson imports what it needs from here. The names in `_HOME` are looked up when they are first
used, so that `import workbench` stays quick and loads no drawing, data or messaging package; the
packages (`workbench.amqp10`, `workbench.trace`, ...) are imported by their own names.
"""

from importlib import import_module

__version__ = "0.1.0"

# The names that lessons use, and where each lives: "module:name there".
_HOME = {
    "Action": "workbench.scenarios:Action",
    "Broker": "workbench.net.serve:Broker",
    "ask_trace": "workbench.cli.asking:ask_trace",
    "background": "workbench.net.background:background",
    "bar_chart": "workbench.views.charts:bar_chart",
    "brake_chart": "workbench.views.trace_charts:brake_chart",
    "capture_desk": "workbench.exercises.capture_desk:capture_desk",
    "class_box": "workbench.exercises.class_box:class_box",
    "class_code": "workbench.exercises.class_lock:class_code",
    "classroom": "workbench.exercises.classroom:classroom",
    "credit_chart": "workbench.views.trace_charts:credit_chart",
    "curve_chart": "workbench.views.charts:curve_chart",
    "export": "workbench.views.stage_page:export",
    "follow": "workbench.cli.following:Follower",
    "frozen_wire": "workbench.views.frozen_wire:FrozenWire",
    "handout": "workbench.exercises.handing_out:handout",
    "import_capture": "workbench.capture.importer:import_capture",
    "lattice_of": "workbench.views.lattice_desk:lattice_of",
    "lattices": "workbench.views.lattice_desk:LatticeDesk",
    "lesson_card": "workbench.exercises.lesson_pages:lesson_card",
    "lesson_map": "workbench.exercises.lesson_pages:lesson_map",
    "look": "workbench.cli.looking:look",
    "museum": "workbench.exercises.museum:museum",
    "open_code": "workbench.exercises.desk:open_code",
    "open_row": "workbench.views.opening:open_row",
    "order_lines": "workbench.exercises.order_lines:order_lines",
    "present": "workbench.exercises.present:present",
    "progress_log": "workbench.exercises.progress_view:progress_log",
    "read_trace": "workbench.trace.files:read",
    "recall": "workbench.exercises.recall_view:recall",
    "reset_all": "workbench.exercises.next_group:reset_all",
    "reset_lesson": "workbench.exercises.lesson_pages:reset_lesson",
    "run": "workbench.scenarios.run:run",
    "scheduler": "workbench.exercises.scheduler:scheduler",
    "section_code": "workbench.exercises.class_lock:section_code",
    "serve": "workbench.net.serve:serve",
    "share_code": "workbench.views.share_view:share_code",
    "show": "IPython.display:display",
    "stack": "workbench.exercises.desk:stack",
    "stage": "workbench.exercises.desk:stage",
    "time_chart": "workbench.views.charts:time_chart",
    "transcript": "workbench.trace.transcript:transcript",
    "try_sender": "workbench.exercises.own_sender:try_sender",
}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604 (the table is the list)


def __getattr__(name: str) -> object:
    """Import a lesson's name from its home on first use."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(
            f"workbench has no {name!r}; a lesson can import {', '.join(sorted(_HOME))}"
        )
    module, _, attribute = home.partition(":")
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazy names too, so that completion in a notebook offers them."""
    return sorted({*globals(), *_HOME})
