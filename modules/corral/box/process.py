"""The daemon seen from outside: starting its process, ending it, asking it. What to do with that is in `control`."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
from http.client import HTTPConnection, HTTPException
from typing import Any

from corral.box.directory import StateDirectory, open_log

READY_TIMEOUT_S = 60  # a loaded machine needs a few seconds; beyond a minute something is wrong
NEEDED = 4 << 20  # bytes: a whole environment is saved in less than 1 MiB, twice for a moment, and the logs grow
FULL = (errno.ENOSPC, errno.EDQUOT)
MISTAKEN = 409  # the HTTP status of a request of the box's own that means nothing there
STOP_TIMEOUT_S = 10  # saving the largest cloud takes well under a second


class BoxError(Exception):
    """A box that cannot do what was asked; the text is one sentence for a person."""


class Mistaken(BoxError):
    """A request that means nothing in this box; the text is one sentence for a person."""

    code = 2  # with which a command ends: wrong input


def spawn(home: StateDirectory, *, machines: bool) -> str:
    """`ready`, `busy`, or the sentence that says why the daemon could not start; it writes that to a pipe."""
    ear, mouth = os.pipe()
    command = [sys.executable, "-m", "corral.box.daemon", "--dir", str(home.path), "--ready", str(mouth)]
    try:
        with os.fdopen(open_log(home.log), "ab") as log:
            daemon = subprocess.Popen(
                [*command, *(["--machines"] if machines else [])],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(mouth,),
                start_new_session=True,
                env=_clean_environment(),
            )
    except OSError as error:
        raise unusable(home, error) from None
    finally:
        os.close(mouth)
    with os.fdopen(ear, "rb") as pipe:
        if not select.select([pipe], [], [], READY_TIMEOUT_S)[0]:
            daemon.kill()
            return f"the box in {home.path} was not ready after {READY_TIMEOUT_S} s - see {home.log}"
        answer = pipe.readline().decode().strip()
    if answer != "ready":
        daemon.wait()
    else:
        daemon.returncode = 0  # it is on its own now: no ResourceWarning, no waiting at our exit
    return answer or f"the box in {home.path} ended before it was ready - see {home.log}"


def end(pid: int) -> None:
    """Ends a daemon: it may save, or is killed if it does not end by itself."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        if not select.select([process], [], [], STOP_TIMEOUT_S)[0]:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            select.select([process], [], [], STOP_TIMEOUT_S)
    except ProcessLookupError:
        return
    except PermissionError:
        raise BoxError(f"the box with process id {pid} belongs to another user - ask them to stop it") from None
    finally:
        os.close(process)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # if it was started from here, nobody else takes its exit code


def ask(port: int, method: str, path: str) -> dict[str, Any]:
    """The daemon's answer to one of its own requests. Raises BoxError if it gives none or refuses, or Mistaken."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        body = json.loads(answer.read())
    except (OSError, HTTPException, ValueError) as error:
        raise BoxError(f"the box at 127.0.0.1:{port} does not answer {path}: {error}") from None
    finally:
        connection.close()
    if answer.status == MISTAKEN:
        raise Mistaken(str(body.get("problem")))
    if answer.status != 200:
        raise BoxError(f"the box at 127.0.0.1:{port} refused {path}: {body.get('problem', answer.reason)}")
    return dict(body)


def unusable(home: StateDirectory, error: Exception) -> BoxError:
    """The sentence for a directory in which something cannot be read or written."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, OSError) and error.errno in FULL:
        reason = f"{reason}: {room(home)}"
    return BoxError(f"{home.path} cannot be used as a box's state directory: {reason} - choose another with --dir")


def require_room(home: StateDirectory) -> None:
    """Raises BoxError where the disk is so full that a box could not save what it says it has made."""
    if free_bytes(home) < NEEDED:
        raise BoxError(
            f"the box in {home.path} was not started: {room(home)} - free some, or choose another with --dir"
        )


def room(home: StateDirectory) -> str:
    """How much room the directory's disk has, and how much a box needs, as a part of a sentence."""
    return f"{free_bytes(home) >> 10:,} KiB are free on the disk of that directory, a box needs {NEEDED >> 20} MiB"


def free_bytes(home: StateDirectory) -> int:
    """What the user may still write where the directory is, or will be."""
    place = next(one for one in (home.path, *home.path.parents) if one.exists())
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def _clean_environment() -> dict[str, str]:
    """The daemon's environment: a profile or endpoint meant for AWS would break moto's own use of boto3."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "MOTO_"))}
    return {**kept, "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
