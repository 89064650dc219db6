"""Data is never code: nothing in the package makes objects, or runs anything, out of a file.

PySpark pickles functions of ours for its own workers; no file and no network of ours is in that.
"""

import ast
import re
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
SOURCES = [*(REPO / "workbench").rglob("*.py"), REPO / "wb.py", *(REPO / "benchmarks").glob("*.py")]

MODULES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
CALLS = {"eval", "exec", "execfile", "read_pickle", "pickleFile", "unpickle", "load_module"}
WORDS = re.compile(r"\b(?:allow_pickle|yaml\.(?:unsafe_)?load|PickleSerializer|CPickle\w*)\b")

# Code that a person has put together in a cell, and codecs written from the field tables at
# import: neither is read from anywhere.
ALLOWED = {
    ("workbench/amqp091/codec.py", "exec"),
    ("workbench/amqp10/generated.py", "exec"),
    ("workbench/amqp010/generated.py", "exec"),
    ("workbench/exercises/order_lines.py", "exec"),
    # The cells of a lesson of ours, for a room.
    ("workbench/exercises/sections.py", "exec"),
    ("workbench/exercises/sections.py", "eval"),
}


def found_in(source: str) -> set[str]:
    """What of it would make objects of data, or run it."""
    found = set(WORDS.findall(source))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.split(".")[0] in MODULES}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or ""} & MODULES
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            found |= {name} & CALLS
    return found


def test_nothing_is_unpickled_or_evaluated():
    """No module that reads objects, no call that runs text."""
    named = {
        (str(file.relative_to(REPO)), name)
        for file in SOURCES
        for name in found_in(file.read_text(encoding="utf-8"))
    }
    assert named == ALLOWED


def test_what_is_looked_for_is_found():
    """Each of them, however it is written."""
    assert found_in("def f():\n    import pickle") == {"pickle"}
    assert found_in("from marshal import loads") == {"marshal"}
    assert found_in("builtins.eval(text)") == {"eval"}
    assert found_in("pd.read_pickle(file)") == {"read_pickle"}
    assert found_in("np.load(file, allow_pickle=True)") == {"allow_pickle"}
    assert found_in("re.compile(text)") == set()
