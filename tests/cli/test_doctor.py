"""`workbench doctor`: what it finds, what it advises, and when it says that nothing will work."""

import json
import os
import subprocess
from importlib import metadata
from pathlib import Path

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
    monkeypatch.setattr(doctor, "_javas", list)
    assert main(["doctor"]) == 0
    found = by_name(doctor.examine())
    assert "C compiler" in found["Proton client"].advice
    assert found["PySpark"].state == found["Java"].state == doctor.NOTE
    assert "17 or newer" in found["Java"].advice


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ('openjdk version "17.0.10" 2024-01-16', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("Error: no java here", None),
    ],
)
def test_java_s_version_is_read_as_java_says_it(monkeypatch, said, number):
    """Old Javas call themselves 1.x."""

    def run(*_args, **_kwargs):
        return subprocess.CompletedProcess([], 0, stdout="", stderr=said)

    monkeypatch.setattr(doctor.subprocess, "run", run)
    assert doctor._java_version(Path("java")) == number


def test_an_old_java_is_named_and_not_used(monkeypatch):
    """The first one that is new enough counts; those before it are told only if none is."""
    ages = {"old": 11, "new": 21}
    monkeypatch.setattr(doctor, "_javas", lambda: [Path("old"), Path("new")])
    monkeypatch.setattr(doctor, "_java_version", lambda place: ages[place.name])
    assert doctor.java().found == "21 at new"
    ages["new"] = 8
    assert doctor.java().found == "old: version 11; new: version 8"


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
    monkeypatch.setattr(doctor, "_memory_bytes", lambda: amount)
    assert doctor.memory().state == state


def test_a_container_s_limit_counts(monkeypatch, tmp_path):
    """What the machine has does not help a process that may not use it."""
    limit = tmp_path / "memory.max"
    limit.write_text("1000000\n")
    monkeypatch.setattr(doctor, "_CGROUP_LIMITS", (str(limit),))
    assert doctor._memory_bytes() == 1_000_000
    limit.write_text("max\n")
    assert doctor._memory_bytes() != 1_000_000
