"""What the README tells a newcomer is true: its links lead somewhere, its commands work."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", "docs/design.md", "data/README.md"]


def text(page: str) -> str:
    """A page of the project."""
    return (REPO / page).read_text(encoding="utf-8")


def shell_lines(page: str) -> list[str]:
    """The commands in a page's shell blocks, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text(page), re.M | re.S)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    """Every relative link and picture exists."""
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text(page)):
        assert ((REPO / page).parent / target).exists(), target


def test_files_that_are_named_are_there():
    """In pages, docstrings and comments; the changelog tells of what has been."""
    folders = ("workbench", "tests", "benchmarks", "docs", "data")
    files = [one for folder in folders for one in (REPO / folder).rglob("*.[pm][yd]")]
    path = re.compile(rf"\b(?:{'|'.join(folders)})/[\w/.-]+\.(?:py|md|ts|json|toml|ipynb)\b")
    gone = {
        (str(file.relative_to(REPO)), named)
        for file in [*files, *map(REPO.joinpath, PAGES), REPO / "INSTRUCTORS.md"]
        if "node_modules" not in file.parts
        for named in path.findall(file.read_text(encoding="utf-8"))
        if not (REPO / named).is_file()
    }
    assert gone == set()


def test_every_lesson_is_listed():
    """A lesson that exists is in the README's table."""
    for path in (REPO / "notebooks").glob("*.ipynb"):
        assert f"(notebooks/{path.name})" in text("README.md"), path.name


def test_the_index_leads_to_what_is_no_lesson():
    """The lessons' links are in its map."""
    index = text("notebooks/00_index.ipynb")
    for path in (REPO / "notebooks").glob("[!0-9]*.ipynb"):
        assert f"({path.name})" in index, path.name


def test_the_pages_say_the_same_of_how_long_the_tests_take():
    """Of the quick run, and of all."""
    told = r"wb\.py test(?: --all)? +#.*(below .*)$"
    first, second = (
        re.findall(told, text(page), re.M) for page in ("README.md", "CONTRIBUTING.md")
    )
    assert first == second
    assert len(first) == 2


def test_every_package_is_in_the_map():
    """A package that exists has its place in the order of reading."""
    for path in (REPO / "workbench").iterdir():
        if (path / "__init__.py").is_file():
            assert f"(workbench/{path.name}/" in text("README.md"), path.name


def test_badges_lead_to_copies_of_lessons():
    """To the index and to one lesson; a copy has the lesson's name."""
    named = re.findall(r"urlpath=lab/tree/my/(\w+\.ipynb)", text("README.md"))
    assert len(named) == 2
    assert named[0] == "00_index.ipynb"
    assert all((REPO / "notebooks" / name).is_file() for name in named)


@pytest.mark.slow
def test_the_commands_of_the_command_line_work(tmp_path):
    """The block is run line by line, as a reader would, in an empty folder."""
    commands = [line for line in shell_lines("README.md") if line.startswith("workbench ")]
    assert commands
    (tmp_path / "data").symlink_to(REPO / "data")
    env = {**os.environ, "PYTHONPATH": str(REPO)}
    for line in commands:
        command = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_wb_knows_the_commands_that_the_pages_name():
    """`wb.py` is there under the names that the README, the Makefile and CI use."""
    known = {"lab", "test", "setup", "COMMAND"}
    for page in ["README.md", "CONTRIBUTING.md", "Makefile", ".ci/run"]:
        named = set(re.findall(r"wb\.py (\w+)", text(page)))
        assert named
        assert named <= known, page


def test_the_changelog_keeps_its_form():
    """Keep a Changelog: an Unreleased section first, and only its six headings."""
    changelog = text("CHANGELOG.md")
    assert changelog.startswith("# Changelog\n")
    assert re.search(r"^## \[(.+)\]", changelog, re.M)[1] == "Unreleased"
    headings = set(re.findall(r"^### (.+)$", changelog, re.M))
    assert headings <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
