"""What is installed is declared once: locks, conda environments and Binder follow pyproject."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.patience import TIMEOUT_S

REPO = Path(__file__).resolve().parent.parent
LOCKS = ["uv.txt", "build.lock", "runtime.lock", "proton.lock", "dev.lock", "clients.lock"]
ENVIRONMENTS = ["environment.yml", "binder/environment.yml"]


def load_lock_tool():
    """Import requirements/lock.py, which is a script and no module of the package."""
    spec = importlib.util.spec_from_file_location("lock_tool", REPO / "requirements" / "lock.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tool = load_lock_tool()


def pins(lock: str):
    """The pins of a committed lock."""
    return tool.read_lock(REPO / "requirements" / lock)


def declared() -> dict:
    """The [project] table."""
    return tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize(
    ("group", "lock"), [("runtime", "runtime.lock"), ("runtime", "dev.lock"), ("dev", "dev.lock"),
                        ("proton", "proton.lock"), ("clients", "clients.lock")]
)  # fmt: skip
def test_each_declared_dependency_is_locked_within_its_range(group, lock):
    """Whoever changes pyproject.toml makes the locks anew."""
    locked = pins(lock)
    for text in tool.project()[group]:
        requirement = Requirement(text)
        versions = [pin.version for pin in locked if pin.name == tool.canonical(requirement.name)]
        assert versions, f"{requirement.name} is not in {lock}: run python requirements/lock.py"
        assert all(Version(version) in requirement.specifier for version in versions), versions


def test_the_tests_run_with_the_learners_versions():
    """What the other locks share with runtime.lock they have at the same versions."""
    runtime = {(pin.name, pin.version, pin.marker) for pin in pins("runtime.lock")}
    names = {name for name, _, _ in runtime}
    for lock in ("dev.lock", "proton.lock", "build.lock", "clients.lock"):
        shared = {(p.name, p.version) for p in pins(lock) if p.name in names}
        assert shared <= {(name, version) for name, version, _ in runtime}
    assert names <= {pin.name for pin in pins("dev.lock")}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_file_is_fixed_by_its_hash(lock):
    """No mirror, however it came by its files, can slip in another one."""
    assert pins(lock)
    for pin in pins(lock):
        assert pin.hashes, pin.name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in pin.hashes)


@pytest.mark.parametrize("name", [*(f"requirements/{lock}" for lock in LOCKS), *ENVIRONMENTS])
def test_no_file_names_an_index_or_a_place_on_a_machine(name):
    """The packages come from wherever the reader's pip gets its packages."""
    text = (REPO / name).read_text(encoding="utf-8")
    assert not re.search(r"https?://|file:|--(extra-)?index-url|--find-links|^-[efir] ", text, re.M)
    assert not re.search(r"/(opt|root|home|tmp|usr)/", text)


def test_environment_files_are_made_from_the_locks():
    """Nobody edits them by hand: `python requirements/lock.py --envs` writes them."""
    check = subprocess.run(
        [sys.executable, str(REPO / "requirements" / "lock.py"), "--check"],
        capture_output=True, text=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    assert (check.returncode, check.stdout) == (0, "")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environment_files_take_only_python_and_pip_from_conda(name):
    """One pinned line a package; no local line, which would rebuild Binder at each commit."""
    lines = (REPO / name).read_text(encoding="utf-8").splitlines()
    body = [line for line in lines if not line.startswith("#")]
    assert body[0].startswith("name: ")
    assert body[1:7] == [
        "channels:", "  - conda-forge", "dependencies:", f"  - python={tool.PYTHON}", "  - pip",
        "  - pip:",
    ]  # fmt: skip
    assert all(re.fullmatch(r"      - [a-z0-9-]+==[\w.+!]+", line) for line in body[7:])


def test_binder_has_its_own_environment_with_everything_pinned():
    """Binder ignores the root's file once `binder/` exists."""
    text = (REPO / "binder" / "environment.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"- ([a-z0-9-]+)==", text))
    for text in declared()["dependencies"] + declared()["optional-dependencies"]["proton"]:
        assert tool.canonical(Requirement(text).name) in listed
    assert not (REPO / ".binder").exists()
    assert len(listed) > 100


@pytest.mark.parametrize("name", ["binder/postBuild", "binder/start"])
def test_binder_scripts_can_be_run(name):
    """Binder runs them as programs; bash reads them without complaint."""
    path = REPO / name
    assert os.access(path, os.X_OK)
    assert path.read_text(encoding="utf-8").startswith("#!/bin/bash\n")
    assert subprocess.run(["bash", "-n", str(path)], timeout=TIMEOUT_S).returncode == 0


def test_binder_start_opens_the_index_and_tells_binder_s_limits(tmp_path):
    """The server is told to open the map; its kernels, how much memory and idle time there is."""
    tell = 'echo "$@"; echo "$WORKBENCH_SPARK_MEMORY $WORKBENCH_IDLE_END_MIN"'
    command = [str(REPO / "binder" / "start"), "sh", "-c", tell, "-", "server", "--port=1"]
    said, limits = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, cwd=tmp_path, check=True
    ).stdout.splitlines()
    assert said.startswith("server --port=1 ")
    assert "--LabApp.default_url=/lab/tree/my/00_index.ipynb" in said
    assert (REPO / "notebooks" / "00_index.ipynb").is_file()
    assert limits == "512m 10"


def test_the_supported_pythons_agree():
    """pyproject.toml, wb.py and the environments speak of the same versions."""
    supported = Requirement(f"python{declared()['requires-python']}").specifier
    text = (REPO / "wb.py").read_text(encoding="utf-8")
    listed = re.search(r"^SUPPORTED = \((.*)\)$", text, re.M)[1]
    versions = re.findall(r"\((\d+), (\d+)\)", listed)
    assert [f"{a}.{b}" for a, b in versions] == ["3.11", "3.12", "3.13"]
    assert all(Version(f"{a}.{b}.0") in supported for a, b in versions)
    assert Version("3.10.9") not in supported
    assert Version("3.14.0") not in supported
    assert tool.PYTHON == "3.11"
