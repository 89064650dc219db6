"""What npm installs for a test, kept in the user's cache and fixed by its lock file's hashes."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

INSTALL_S = 300


def installed(package: Path, name: str) -> Path:
    """The folder `node_modules` with what the lock file in `package` names; installed if need be.

    Without node or npm, or without a registry, the test is skipped.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip(f"needs node and npm for {name}")
    lock = (package / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "amqp-flow-workbench" / f"{name}-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copyfile(package / file, folder / file)
        try:
            made = subprocess.run(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not install {name} within {INSTALL_S} s")
        if made.returncode:
            pytest.skip(f"npm could not install {name}: {made.stderr.strip()[-200:]}")
        (folder / "done").touch()
    return folder / "node_modules"
