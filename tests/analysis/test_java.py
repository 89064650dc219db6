"""Which Java Spark runs on, and the cache with which it starts in half the time.

No cache is made here, which would take longer than all other tests of the folder: a program of a
few lines stands for Java, and what a real one keeps is a file of a few words.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.analysis import gateway, java, java_cache, java_training, session
from workbench.analysis.errors import AnalysisError
from workbench.analysis.java import Java, find_java

WHEEL = Java(home=Path("/wheel"), version=25, bundled=True, build="25.0.2+10")


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


@pytest.fixture
def prefix(monkeypatch, tmp_path):
    """An environment of its own, in which no cache lies yet."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.delenv(java_cache.VARIABLE, raising=False)
    monkeypatch.setattr(java_training, "find_java", lambda: WHEEL)
    return tmp_path / "prefix"


def kept(a_java: Java = WHEEL) -> Path:
    """A cache that this Java is said to have made."""
    file = java_cache.place(a_java)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("classes", encoding="utf-8")
    return file


def make(say=lambda _: None) -> Path | None:
    """A making as the installation asks for it."""
    return java_training.make(Path("trace.parquet"), {}, say=say)


# -- which Java


def test_the_java_that_is_named_comes_first_then_the_wheel_s_then_the_path_s(three, monkeypatch):
    """The wheel's has a cache, which is why it comes before one that happens to be installed."""
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


def test_two_builds_of_one_version_are_told_apart(three, tmp_path):
    """A cache of one is not the other's."""
    builds = {
        find_java({"JAVA_HOME": str(a_java(tmp_path / name, name))}).build
        for name in ("25.0.2", "25.0.3")
    }
    assert len(builds) == 2


def test_java_s_home_is_set_for_the_launcher_alone(monkeypatch):
    """What the wheel's Java has for a home ends with this process: a child is not to inherit it."""
    monkeypatch.setenv("JAVA_HOME", "/before")
    with gateway._java_home(Path("/shim")):
        assert os.environ["JAVA_HOME"] == "/shim"
    assert os.environ["JAVA_HOME"] == "/before"
    monkeypatch.delenv("JAVA_HOME")
    with gateway._java_home(Path("/shim")):
        pass
    assert "JAVA_HOME" not in os.environ


# -- which cache


def test_another_build_or_another_spark_has_another_cache(prefix, monkeypatch):
    """The file's name is made of both; the same name comes of the same."""
    names = {java_cache.place(WHEEL), java_cache.place(replace(WHEEL, build="25.0.3+9"))}
    monkeypatch.setattr(java_cache.metadata, "version", lambda name: "4.3.1")
    names.add(java_cache.place(WHEEL))
    assert len(names) == 3
    assert java_cache.place(WHEEL) == java_cache.place(replace(WHEEL, home=Path("/elsewhere")))


@pytest.mark.parametrize("other", [{"bundled": False}, {"version": 21}])
def test_a_java_that_keeps_nothing_has_no_cache(other, prefix):
    """An older one, or one that is not the wheel's: it starts as it always did."""
    assert java_cache.place(replace(WHEEL, **other)) is None
    assert java_cache.options(replace(WHEEL, **other)) == ()


def test_a_cache_is_used_if_it_is_this_java_s(prefix, monkeypatch):
    """And told to be used quietly; that of another build is not looked at."""
    assert java_cache.options(WHEEL) == ()
    kept(replace(WHEEL, build="25.0.1"))
    assert java_cache.options(WHEEL) == ()
    file = kept()
    assert java_cache.options(WHEEL) == (*java_cache.QUIET, f'"-XX:AOTCache={file}"')
    monkeypatch.setenv(java_cache.VARIABLE, "none")
    assert java_cache.options(WHEEL) == ()


@pytest.mark.parametrize(
    ("cache", "settings", "used"),
    [
        (True, {}, True),
        (True, {"quick": True}, True),
        (False, {}, False),
        (True, {"master": "spark://host:7077"}, False),
        (True, {"more": {session.JAVA_OPTIONS: "-Xint"}}, False),
    ],
)
def test_spark_is_started_with_the_cache_if_there_is_one(
    cache, settings, used, prefix, monkeypatch
):
    """On this machine only, and not beside Java options of one's own."""
    if cache:
        kept()
    given = {}

    def start(options, home):
        given.update(options)
        raise AnalysisError("not started")

    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setattr(session, "find_java", lambda: WHEEL)
    monkeypatch.setattr(session, "start_java", start)
    with pytest.raises(AnalysisError, match="not started"):
        session.get_spark(say=lambda _: None, **{"master": "local[2]", **settings})
    assert ("-XX:AOTCache=" in given[session.JAVA_OPTIONS]) == used


# -- its making


def test_a_cache_takes_its_place_when_it_is_whole_and_those_of_older_versions_go(
    prefix, monkeypatch
):
    """Its name is not there before; a second making does nothing."""
    old = kept(replace(WHEEL, build="25.0.1"))
    target = java_cache.place(WHEEL)
    trained = []

    def train(_java, _trace, _more, part, _say):
        trained.append(part)
        part.write_text("classes")
        assert not target.exists()

    monkeypatch.setattr(java_training, "_train", train)
    assert make() == make() == target
    assert len(trained) == 1
    assert not old.exists()
    assert [file.name for file in java_cache.folder().iterdir()] == [target.name]


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (AnalysisError("Java said: no"), "Java said: no"),
        (OSError(28, "No space left on device"), "No space left"),
        (None, "kept nothing"),
        (KeyboardInterrupt("stopped"), "stopped"),
    ],
)
def test_a_making_that_fails_leaves_nothing_half_made(problem, told, prefix, monkeypatch):
    """Neither the cache nor what Java wrote on the way; an older cache is still there."""
    old = kept(replace(WHEEL, build="25.0.1"))

    def train(_java, _trace, _more, part, _say):
        part.with_name(part.name + ".seen").write_text("half")
        if problem is not None:
            part.write_text("half")
            raise problem

    monkeypatch.setattr(java_training, "_train", train)
    expected = KeyboardInterrupt if isinstance(problem, KeyboardInterrupt) else AnalysisError
    with pytest.raises(expected, match=told):
        make()
    assert list(java_cache.folder().iterdir()) == [old]


def test_what_a_killed_making_left_is_removed_by_the_next(prefix, monkeypatch):
    """But not what one that runs beside it is at."""
    target = kept()
    left, beside = (target.with_name(f".{target.name}.{number}") for number in (1, 2))
    target.rename(left)
    beside.write_text("half")
    long_ago = beside.stat().st_mtime - java_training._OLD_S - 1
    os.utime(left, (long_ago, long_ago))
    monkeypatch.setattr(java_training, "_train", lambda *given: given[3].write_text("classes"))
    make()
    assert not left.exists()
    assert beside.exists()


def test_a_full_disk_is_told_before_java_is_started(prefix, monkeypatch):
    """In one line, with what is needed."""
    usage = type("Usage", (), {"free": 5_000_000})
    monkeypatch.setattr(java_training.shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(java_training, "_train", lambda *_: pytest.fail("Java was started"))
    with pytest.raises(AnalysisError, match="5 MB are free, 600 are needed"):
        make()
    assert list(java_cache.folder().iterdir()) == []


def test_an_environment_that_cannot_be_written_to_gets_none(prefix, monkeypatch):
    """Told in one line, before Java is started."""
    prefix.write_text("a file, where the folder would be")
    monkeypatch.setattr(java_training, "_train", lambda *_: pytest.fail("Java was started"))
    with pytest.raises(AnalysisError, match="prefix"):
        make()


def test_where_no_cache_can_be_nothing_is_done(prefix, monkeypatch):
    """With another Java, or where it is turned off."""
    monkeypatch.setattr(java_training, "_train", lambda *_: pytest.fail("Java was started"))
    monkeypatch.setenv(java_cache.VARIABLE, "none")
    assert make() is None
    monkeypatch.delenv(java_cache.VARIABLE)
    monkeypatch.setattr(java_training, "find_java", lambda: replace(WHEEL, bundled=False))
    assert make() is None
    assert not prefix.exists()
