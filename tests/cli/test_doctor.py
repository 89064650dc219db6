"""`workbench doctor`: what it finds, what it advises, and when it says that nothing will work."""

import json
import os
from importlib import metadata

import pytest

from workbench.analysis.java import find_java
from workbench.cli import doctor, main


def by_name(findings) -> dict[str, doctor.Finding]:
    """Findings by what was looked at."""
    return {finding.what: finding for finding in findings}


def test_this_machine_is_well(capsys):
    """Where the tests run, every lesson without Java works: exit code 0."""
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "MISSING" not in told
    for word in ("workbench", "Python", "jupyterlab", "Proton client", "Java", "memory"):
        assert word in told


def test_for_programs_it_is_json(capsys):
    """A list of findings, each with state, what, found and advice."""
    main(["doctor", "--format", "json"])
    findings = json.loads(capsys.readouterr().out)
    assert {"state", "what", "found", "advice"} == set(findings[0])
    versions = {finding["what"]: finding["found"] for finding in findings}
    assert versions["bokeh"] == metadata.version("bokeh")


def test_a_program_may_be_named_instead_of_found(monkeypatch):
    """As the tests take it, whose variable it is."""
    monkeypatch.setenv("WORKBENCH_CHROMIUM", "/opt/own/chromium")
    assert by_name(doctor.examine())["Chromium"].found == "/opt/own/chromium"


def test_whatever_is_not_well_comes_with_advice():
    """A finding that is not ok says what will not work and what to do."""
    assert all(finding.advice for finding in doctor.examine() if finding.state != doctor.OK)


def test_a_missing_package_fails(capsys, monkeypatch):
    """Exit code 1 where no lesson can be opened."""
    real = doctor.version
    monkeypatch.setattr(doctor, "version", lambda name: None if name == "bokeh" else real(name))
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "MISSING bokeh" in told
    assert "wb.py setup" in told


def test_what_only_some_lessons_need_does_not_fail(capsys, monkeypatch):
    """No Proton, no Spark, no Java: notes, with what is lost."""
    real = doctor.version
    absent = ("python-qpid-proton", "pyspark")
    monkeypatch.setattr(doctor, "version", lambda name: None if name in absent else real(name))
    monkeypatch.setattr(doctor, "javas", lambda environment: iter(()))
    assert main(["doctor"]) == 0
    found = by_name(doctor.examine())
    assert "C compiler" in found["Proton client"].advice
    assert found["PySpark"].state == found["Java"].state == doctor.NOTE
    assert "17 or newer" in found["Java"].advice


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('openjdk version "17.0.10" 2024-01-16', "17 at {home}"),
        ('java version "1.8.0_402"', "{home}: version 8"),
        ('openjdk version "21" 2023-09-19', "21 at {home}"),
        ("Error: no java here", "{home}: does not run"),
    ],
)
def test_java_s_version_is_read_as_java_says_it(only, said, found):
    """Old Javas call themselves 1.x."""
    home = only("home", said)
    assert doctor.java().found == found.format(home=home)


def test_an_old_java_is_named_and_not_used(only, monkeypatch):
    """The first one that is new enough counts; those before it are told only if none is."""
    old, new = only("home", 'java version "11.0.2"'), only("path", 'java version "21"')
    assert doctor.java().found == f"21 at {new}"
    only("path", 'java version "1.8.0"')
    assert doctor.java().found == f"{old}: version 11; {new}: version 8"


def test_a_java_that_is_not_to_be_used_is_not_told_as_good(only, monkeypatch):
    """What Spark is not started with is no good Java, whatever lies there."""
    only("home", 'java version "21"')
    monkeypatch.setenv("WORKBENCH_JAVA", "none")
    found = doctor.java()
    assert (found.state, found.found) == (doctor.NOTE, "WORKBENCH_JAVA=none")
    assert "unset WORKBENCH_JAVA" in found.advice


@pytest.fixture
def only(monkeypatch, tmp_path):
    """Makes the only Javas there are: one in JAVA_HOME, `home`, and one on the search `path`."""
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WORKBENCH_JAVA", raising=False)

    def make(name, said):
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho '{said}' >&2\n", encoding="utf-8")
        program.chmod(0o755)
        return tmp_path / name

    return make


@pytest.mark.parametrize("named", [True, False])
def test_the_java_that_is_told_is_the_one_that_spark_uses(named, monkeypatch, tmp_path):
    """One in JAVA_HOME, else the wheel's, else one on the search path."""
    for name in ("home", "path"):
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho 'openjdk version \"99.0.1\"' >&2\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"), prepend=os.pathsep)
    monkeypatch.delenv("WORKBENCH_JAVA", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if named:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    used = find_java()
    told = doctor.java().found
    assert told.startswith(f"{used.version} at ")
    assert ("java-runtime" in told) == used.bundled == (not named)


def test_a_java_that_does_not_start_is_told(monkeypatch, tmp_path):
    """A broken JAVA_HOME does not end the command."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert "does not run" in doctor.java().found


@pytest.mark.parametrize(("amount", "state"), [(2**31, doctor.NOTE), (2**33, doctor.OK)])
def test_little_memory_is_told(monkeypatch, amount, state):
    """Binder gives 2 GB: enough without Spark."""
    monkeypatch.setattr(doctor, "total_memory", lambda: amount)
    assert doctor.memory().state == state
