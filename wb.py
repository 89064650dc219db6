#!/usr/bin/env python3
"""Start the AMQP Flow Workbench from a fresh checkout. Needs nothing but Python.

    python3 wb.py lab               JupyterLab opens on the map of the lessons
    python3 wb.py test              the project's tests without the long ones
    python3 wb.py test --all        every test; further arguments go to pytest
    python3 wb.py test tests/amqp10   these tests: any other arguments go to pytest
    python3 wb.py setup [--dev]     only make the private environment
    python3 wb.py COMMAND ...       any command of `workbench`: run, show, import, doctor, ...

The first start makes a private environment in `.venv`, from locks that fix every package by its
hash, which takes about a minute; later starts use it as it is. Delete `.venv` to be rid of it.

WORKBENCH_VENV          another place for the environment
WORKBENCH_PYTHON        the Python (3.11 to 3.13) to make it with
"""
# Rules of this file: standard library only, and a syntax that Python 2.7 and every 3 can read, so
# that whoever starts it with an old Python is told what to do instead of seeing a SyntaxError.

from __future__ import print_function

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys

SUPPORTED = ((3, 11), (3, 12), (3, 13))
REPO = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.abspath(os.environ.get("WORKBENCH_VENV") or os.path.join(REPO, ".venv"))
WINDOWS = os.name == "nt"
BIN = os.path.join(VENV, "Scripts" if WINDOWS else "bin")
VENV_PYTHON = os.path.join(BIN, "python.exe" if WINDOWS else "python")
STAMP = os.path.join(VENV, "workbench.json")
LAYOUT = 1  # raise it when an environment made by an older wb.py must not be used any more


class StopError(Exception):
    """Something that the person must put right; its text is the one line they see."""


def say(text):
    """Tell what is being done, on stderr so that a command's own output stays clean."""
    sys.stderr.write("wb: " + text + "\n")
    sys.stderr.flush()


# --- which Python -------------------------------------------------------------------------------


def version_of(python):
    """Ask an interpreter for its (major, minor); None where it does not run."""
    code = "import sys; print('%d %d' % sys.version_info[:2])"
    try:
        process = subprocess.Popen(
            [python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env()
        )
        words = process.communicate()[0].split()
    except OSError:
        return None
    return (int(words[0]), int(words[1])) if process.returncode == 0 and len(words) == 2 else None


def candidates():
    """Yield the places where a supported Python may be, the one that runs this file first."""
    if os.environ.get("WORKBENCH_PYTHON"):
        yield os.environ["WORKBENCH_PYTHON"]
        return
    if sys.version_info[:2] in SUPPORTED:
        # The base of an environment, not its own Python: that one may be about to be removed.
        yield getattr(sys, "_base_executable", None) or sys.executable
    names = ["python%d.%d" % version for version in SUPPORTED] + ["python3", "python"]
    for name in names:
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            path = os.path.join(folder, name + (".exe" if WINDOWS else ""))
            if folder and os.path.isfile(path) and os.access(path, os.X_OK):
                yield path
    pyenv = os.path.join(
        os.environ.get("PYENV_ROOT") or os.path.join(os.path.expanduser("~"), ".pyenv"), "versions"
    )
    for version in sorted(os.listdir(pyenv)) if os.path.isdir(pyenv) else ():
        yield os.path.join(pyenv, version, "bin", "python")


def find_python():
    """Find a Python that the workbench runs on."""
    for path in candidates():
        if version_of(path) in SUPPORTED:
            return path
    raise StopError(
        "the workbench needs Python 3.11, 3.12 or 3.13; this is %d.%d and no other was found."
        " Install one, or name it: WORKBENCH_PYTHON=/path/to/python3.12 python3 wb.py lab"
        % sys.version_info[:2]
    )


# --- the environment ----------------------------------------------------------------------------


def clean_env(**more):
    """Give this process's variables without those that make a Python look elsewhere."""
    env = dict(os.environ)
    for name in ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"):
        env.pop(name, None)
    env.update(more)
    return env


def run(command, log=None, **env):
    """Run a command; give its exit code, or 127 where it cannot be started."""
    try:
        return subprocess.call(
            command, env=clean_env(**env), stdout=log or 2, stderr=log or 2, close_fds=False
        )
    except OSError:
        return 127


def requirement(name):
    """Give the path of a file in requirements/."""
    return os.path.join(REPO, "requirements", name)


def digest(name):
    """Give the hash of a lock: an environment is as good as the lock it was made from."""
    with open(requirement(name), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def read_stamp():
    """Read what the environment holds; nothing where it is absent, half-made or moved."""
    try:
        with io.open(STAMP, encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, IOError, ValueError):
        return {}
    whole = stamp.get("layout") == LAYOUT and stamp.get("repo") == REPO
    return stamp if whole and version_of(VENV_PYTHON) in SUPPORTED else {}


def write_stamp(stamp):
    """Say what the environment holds: always the last thing done to it."""
    with io.open(STAMP + ".new", "w", encoding="utf-8") as file:
        file.write("%s\n" % json.dumps(stamp, indent=1, sort_keys=True))
    if WINDOWS and os.path.exists(STAMP):
        os.remove(STAMP)
    os.rename(STAMP + ".new", STAMP)


def locked():
    """Let one wb.py at a time change the environment; the file object holds the lock.

    Installers inherit it: one that outlives a killed wb.py keeps the next wb.py waiting.
    """
    folder = os.path.dirname(VENV)
    if not os.path.isdir(folder):
        os.makedirs(folder)
    file = open(VENV + ".lock", "w")
    try:
        import fcntl
    except ImportError:
        return file
    os.set_inheritable(file.fileno(), True)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, IOError):
        say("another wb.py is making the environment; waiting for it")
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def make_venv():
    """Make an empty environment with pip in it."""
    python = find_python()
    say("making %s with Python %d.%d" % ((VENV,) + version_of(python)))
    if os.path.isdir(VENV):
        shutil.rmtree(VENV)
    if run([python, "-m", "venv", VENV]) != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        raise StopError(
            "this Python cannot make environments. On Debian and Ubuntu:"
            " sudo apt install python3-venv python3-dev"
        )


def index_settings():
    """Translate the package index that pip is set up to use, for uv does not read pip's files.

    Only the main index and the certificates: where more is needed to reach the packages, uv fails
    and pip takes over. uv's own settings win.
    """
    try:
        listing = subprocess.Popen(
            [VENV_PYTHON, "-m", "pip", "config", "list"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_env(),
        ).communicate()[0].decode("utf-8", "replace")  # fmt: skip
    except OSError:
        listing = ""
    found = {}
    for source in ("global.", "install.", ":env:."):  # the later one wins, as in pip
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            if key.startswith(source):
                found[key[len(source) :]] = value.strip().strip("'\"")
    env = {"UV_NO_CACHE": "1", "UV_SYSTEM_CERTS": "1"}
    if found.get("index-url"):
        env["UV_DEFAULT_INDEX"] = found["index-url"]
    if found.get("cert"):
        env["SSL_CERT_FILE"] = found["cert"]
    if found.get("trusted-host"):
        env["UV_INSECURE_HOST"] = found["trusted-host"]
    return dict((name, value) for name, value in env.items() if not os.environ.get(name))


def install(lock, log=None):
    """Install a hashed lock: by uv, which is three times as fast, else by pip."""
    quiet = [] if sys.stderr.isatty() and not log else ["--quiet"]
    pip = [VENV_PYTHON, "-m", "pip", "--disable-pip-version-check", "install"] + quiet
    hashed = ["--require-hashes", "-r", requirement(lock)]
    uv = [VENV_PYTHON, "-m", "uv"]
    fast = run(uv + ["--version"], log=subprocess.DEVNULL) == 0 or (
        run(pip + ["--no-deps", "--require-hashes", "-r", requirement("uv.txt")], log=log) == 0
    )
    if fast:
        command = uv + ["pip", "install", "--python", VENV_PYTHON] + quiet
        command += ["--build-constraints", requirement("build.lock")] + hashed
        if run(command, log=log, **index_settings()) == 0:
            return True
    say("uv could not do it; trying with pip, which takes longer")
    return run(pip + hashed, log=log) == 0


def compiler():
    """Name the C compiler and the Python headers there are; empty where one is missing."""
    code = "import os, sysconfig as s; print(os.path.join(s.get_path('include'), 'Python.h'))"
    try:
        header = subprocess.check_output([VENV_PYTHON, "-c", code], env=clean_env())
    except (OSError, subprocess.CalledProcessError):
        return ""
    header = header.decode("utf-8", "replace").strip()
    names = os.environ.get("CC", "").split()[:1] + ["cc", "gcc", "clang"]
    for name in ["cl"] if WINDOWS else names:
        path = shutil.which(name)
        if path and os.path.exists(header):
            return path + " " + header
    return ""


def add_proton(stamp):
    """Add the real AMQP client, which must be compiled, where that can be done.

    The outcome is kept with the compiler it was tried with: no try is repeated until something
    that matters has changed.
    """
    tools = compiler()
    state = {"lock": digest("proton.lock"), "tools": tools}
    before = stamp.get("proton", {})
    if before.get("lock") == state["lock"] and (before.get("here") or before["tools"] == tools):
        return before
    state["here"] = False
    if tools:
        say("compiling the Proton client (about 20 seconds)")
        with open(os.path.join(VENV, "proton-build.log"), "w") as log:
            state["here"] = install("proton.lock", log=log)
        if not state["here"]:
            say("Proton did not compile; see " + log.name + ". Only its own cells need it.")
    else:
        say(
            "no C compiler or no Python headers: the cells that use the real Proton client will"
            " say so. On Debian and Ubuntu: sudo apt install build-essential python3-dev"
        )
    return state


def add_clients(stamp):
    """Add the other clients that the tests talk with; they stand on the one that is compiled."""
    if stamp["locks"].get("clients.lock") == digest("clients.lock"):
        return
    if install("clients.lock"):
        stamp["locks"]["clients.lock"] = digest("clients.lock")
    else:
        say("requirements/clients.lock could not be installed; its tests will be skipped")


def connect():
    """Make the environment see this checkout, and JupyterLab its settings."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    output = subprocess.check_output([VENV_PYTHON, "-c", code], env=clean_env())
    site = output.decode("utf-8").strip()
    with io.open(os.path.join(site, "workbench-checkout.pth"), "w", encoding="utf-8") as file:
        file.write("%s\n" % REPO)
    script = os.path.join(BIN, "workbench.cmd" if WINDOWS else "workbench")
    with io.open(script, "w", encoding="utf-8") as file:
        if WINDOWS:
            file.write('@"%s" -m workbench %%*\r\n' % VENV_PYTHON)
        else:
            file.write('#!/bin/sh\nexec "%s" -m workbench "$@"\n' % VENV_PYTHON)
    os.chmod(script, 0o755)
    source = os.path.join(REPO, "binder", "jupyter")
    for folder, _, names in os.walk(source):
        target = os.path.join(VENV, "etc", "jupyter", os.path.relpath(folder, source))
        if not os.path.isdir(target):
            os.makedirs(target)
        for name in names:
            shutil.copyfile(os.path.join(folder, name), os.path.join(target, name))


def settings_digest():
    """Give the hash of what `connect` copies."""
    total = hashlib.sha256()
    for folder, _, names in sorted(os.walk(os.path.join(REPO, "binder", "jupyter"))):
        for name in sorted(names):
            with open(os.path.join(folder, name), "rb") as file:
                total.update(file.read())
    return total.hexdigest()[:16]


def add_packages(lock, stamp):
    """Install a lock that the environment does not hold yet, or holds in an older form.

    An installer that is ended half-way leaves no stamp behind, so the environment is made anew. One
    that fails has changed nothing, because it fetches and builds everything first: what was there
    stays in use.
    """
    say("installing requirements/%s (about a minute, some 1.1 GB)" % lock)
    had_stamp = os.path.exists(STAMP)
    if had_stamp:
        os.rename(STAMP, STAMP + ".old")
    done = install(lock)
    if had_stamp:
        os.rename(STAMP + ".old", STAMP)
    if done:
        stamp["locks"][lock] = digest(lock)
        if lock == "dev.lock":  # it holds the smaller lock, at the same versions
            stamp["locks"]["runtime.lock"] = digest("runtime.lock")
    elif lock in stamp["locks"]:
        say("the packages could not be brought up to date; going on with those that are there")
    else:
        raise StopError("the packages could not be installed; the lines above say why")


def setup(dev):
    """Bring the environment in step with the locks; do nothing where it is."""
    with locked():
        in_step("dev.lock" if dev else "runtime.lock")


def in_step(lock):
    """Do what is missing, and say so in the stamp when it is done."""
    stamp = read_stamp()
    if not stamp:
        if os.path.isdir(VENV):
            say("the environment is half-made, moved or outdated: making it anew")
        make_venv()
        stamp = {"layout": LAYOUT, "repo": REPO, "locks": {}}
    before = json.dumps(stamp, sort_keys=True)
    if stamp["locks"].get(lock) != digest(lock):
        add_packages(lock, stamp)
    stamp["proton"] = add_proton(stamp)
    if lock == "dev.lock" and stamp["proton"]["here"]:
        add_clients(stamp)
    if stamp.get("settings") != settings_digest():
        connect()
        stamp["settings"] = settings_digest()
    if json.dumps(stamp, sort_keys=True) != before:
        write_stamp(stamp)
        say("the environment is ready")


# --- commands -----------------------------------------------------------------------------------


def become(command):
    """Replace this process by a command, so that signals and the exit code are its own."""
    env = clean_env(PATH=BIN + os.pathsep + os.environ.get("PATH", os.defpath))
    env["VIRTUAL_ENV"] = VENV
    sys.stdout.flush()
    if WINDOWS:
        sys.exit(subprocess.call(command, env=env))
    os.execve(command[0], command, env)


def selection(arguments):
    """Give pytest's arguments: the quick run, all, or just what was asked for.

    Three processes keep two cores busy while one of them waits for a browser or a server.
    """
    if not arguments:
        return ["-n", "3", "-m", "not slow"]
    if arguments[0] == "--all":
        return ["-n", "3"] + arguments[1:]
    return arguments[1:] if arguments[0] == "--" else arguments


def main(arguments):
    """Do what the command line asks for."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    command, rest = arguments[0], arguments[1:]
    if command == "setup" and rest not in ([], ["--dev"]):
        raise StopError("setup takes no argument but --dev")
    if sys.version_info[:2] not in SUPPORTED:  # this one can look for another, and no more
        python = find_python()
        os.execv(python, [python, os.path.abspath(__file__)] + arguments)
    setup(dev=command == "test" or (command == "setup" and rest == ["--dev"]))
    if command == "setup":
        return 0
    if command == "test":
        os.chdir(REPO)
        # Hundreds of processes that tests start would each compile all of it again.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        become([VENV_PYTHON, "-m", "pytest"] + selection(rest))
    become([VENV_PYTHON, "-m", "workbench", command] + rest)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except StopError as stop:
        say(str(stop))
        sys.exit(1)
    except EnvironmentError as error:  # no right to write here, no room left
        say("could not make the environment: %s" % error)
        sys.exit(1)
    except KeyboardInterrupt:
        say("stopped")
        sys.exit(130)
