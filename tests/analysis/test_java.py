"""Which Java Spark runs on: a program of a few lines stands for each."""

import os
import subprocess
from pathlib import Path

import pytest

from workbench.analysis import java, session
from workbench.analysis.errors import AnalysisError
from workbench.analysis.java import find_java


def a_java(home: Path, version: str) -> Path:
    """A folder as JAVA_HOME names it, with a Java that can only tell its version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    program.chmod(0o755)
    return home


@pytest.fixture
def three(monkeypatch, tmp_path):
    """A Java in JAVA_HOME, one in the wheel, one on the search path; gives their variables."""
    homes = {
        "JAVA_HOME": a_java(tmp_path / "home", "17.0.1"),
        "wheel": a_java(tmp_path / "wheel", "25.0.2"),
        "PATH": a_java(tmp_path / "path", "21.0.3") / "bin",
    }
    monkeypatch.setattr(java, "_wheel", lambda: homes["wheel"])
    return {name: str(homes[name]) for name in ("JAVA_HOME", "PATH")}


def test_the_java_that_is_named_comes_first_then_the_wheel_s_then_the_path_s(three, monkeypatch):
    """The tests run on the wheel's, which is why it comes before one that happens to be there."""
    assert find_java(three).version == 17
    path = {"PATH": three["PATH"]}
    assert find_java(path).version == 25
    assert find_java(path).bundled
    monkeypatch.setattr(java, "_wheel", lambda: None)
    assert find_java(path).version == 21
    assert not find_java(path).bundled


def test_the_wheel_s_java_can_be_asked_for_and_every_java_refused(three):
    """By one variable, whatever else is set."""
    assert find_java(three | {java.CHOICE: "bundled"}).bundled
    with pytest.raises(AnalysisError, match="WORKBENCH_JAVA=none"):
        find_java(three | {java.CHOICE: "none"})


def test_a_java_that_is_too_old_or_broken_is_passed_over(three, tmp_path):
    """And told of only if there is no other."""
    assert find_java(three | {"JAVA_HOME": str(a_java(tmp_path / "old", "11.0.2"))}).version == 25
    assert find_java(three | {"JAVA_HOME": str(tmp_path / "nothing")}).version == 25


def test_java_s_home_is_set_for_the_launcher_alone(monkeypatch):
    """What the wheel's Java has for a home ends with this process: a child is not to inherit it."""
    monkeypatch.setenv("JAVA_HOME", "/before")
    with session._java_home(Path("/shim")):
        assert os.environ["JAVA_HOME"] == "/shim"
    assert os.environ["JAVA_HOME"] == "/before"
    monkeypatch.delenv("JAVA_HOME")
    with session._java_home(Path("/shim")):
        pass
    assert "JAVA_HOME" not in os.environ


def test_the_wheel_s_java_is_not_asked_for_what_it_lacks(tmp_path):
    """A module and a package that Spark's launcher names; all else arrives as it is."""
    program = tmp_path / "java"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    given = [
        "--add-modules=jdk.incubator.vector", "-Dname=two words",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "--add-opens=java.base/java.net=ALL-UNNAMED",
    ]  # fmt: skip
    called = subprocess.run(
        [str(java._shim(program) / "bin" / "java"), *given],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert called.stdout.splitlines() == [given[1], given[3]]
