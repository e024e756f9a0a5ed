"""Start, stop, reset and query the box of a state directory, from any process. `control` changes a running one.

This module imports only the standard library and the catalog; moto runs in the daemon. Every failure is a `BoxError`
with one sentence for the user.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from corral.box import provider
from corral.box.account import REGION
from corral.box.daemon.daemon_process import (
    DISK_FULL,
    READY_TIMEOUT_S,
    REQUIRED_BYTES,
    BoxAddress,
    BoxError,
    InvalidRequest,
    describe_free_space,
    free_bytes,
    require_disk_space,
    send_request,
    spawn,
    terminate,
    unusable_directory,
)
from corral.box.daemon.disk_space import disk_space_problem, require_disk_space_for_machines
from corral.box.machines.rootfs import HOST_SYSTEM, image_profile, system_from_environment, system_of
from corral.box.secret import BoxSecret, read_secret
from corral.box.state import lock
from corral.box.state.directory import StateDirectory
from corral.box.state.ownership import ownership_problem
from corral.box.switches import NEW_BOX, Behaviour, Machines, Provider, Switches, parse_switches, switches_of
from corral.catalog.aws.images import BOX_PROFILE, IMAGE_VARIABLE, VM_PROFILE

PYTHON = sys.executable  # runs Pulumi's plugins and programs
ROLE_VARIABLE = "CORRAL_BOX_ROLE"  # the role whose session the commands use; unset: the account's owner

__all__ = ["BoxError", "BoxStatus", "environment", "reset", "start", "status", "stop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxStatus:
    """The status of the box of a directory. `problem`: why a running box cannot save its state or run machines.

    `switches`: those of the last start. `no_machines_reason`: why instances are not machines; None if they are.
    `faults`: the active faults, a line each.
    """

    state: Literal["running", "stopped", "crashed"]
    dir: Path
    url: str | None = None
    pid: int | None = None
    port: int | None = None
    started: datetime | None = None
    switches: Switches = NEW_BOX
    problem: str | None = None
    no_machines_reason: str | None = None
    faults: tuple[str, ...] = ()


def start(
    dir: Path,
    *,
    provider: Provider | None = None,
    machines: Machines | None = None,
    behaviour: Behaviour | None = None,
    speed: int | None = None,
    system: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> BoxStatus:
    """Start a box from the saved state, unless one already runs. Returns its status.

    A switch that is None keeps its value of the last start. `system`: the root directory of the machines' system
    (default: CORRAL_BOX_SYSTEM, or the one in use). `report`: gets a line for
    each step that takes minutes. Raises BoxError if the box runs with other switches.
    """
    if sys.platform != "linux":
        raise BoxError(f"the box needs Linux, this is {sys.platform} - use WSL or a Linux machine")
    home = _own(dir)
    now = status(dir)
    given = {"provider": provider, "machines": machines, "behaviour": behaviour}
    try:
        wanted = parse_switches({**given, "speed": None if speed is None else str(speed)}, now.switches)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    if now.state == "running" and wanted != now.switches:
        raise BoxError(
            f"the box in {home.path} runs with {now.switches.options_unlike(wanted)} - `corral box stop`, then start it"
            f" with {wanted.options_unlike(now.switches)}"
        )
    _require_provider(home, now.switches.provider, wanted.provider)
    _prepare(home, wanted)
    if now.state == "running":
        return now
    require_disk_space(home)
    _require_machines(home, now.switches.machines, wanted.machines)
    if wanted.machines is Machines.VM:
        from corral.box.vm.preparation import prepare

        prepare(home.virtual_support, report)
    _set_system(home, system or system_from_environment(os.environ))
    answer = spawn(home, wanted)
    if answer == "ready":
        return status(dir)
    if answer == "busy":
        return _await_other(dir)
    raise BoxError(answer)


def require_disk_space_to_boot(dir: Path) -> None:
    """Raises BoxError if instances are machines in this box and the disk lacks space for them."""
    if status(dir).no_machines_reason is None:
        require_disk_space_for_machines(StateDirectory(dir.absolute()))


def stop(dir: Path) -> bool:
    """Stop the box of the directory. True if one ran. Raises BoxError if it could not save its state."""
    home = _own(dir)
    pid = _holder(home)
    if not pid:
        _remove(home.record)
        return False
    saved = _identity(home.cloud)
    terminate(pid)
    _remove(home.record)
    if _identity(home.cloud) == saved and home.path.is_dir():
        reason = describe_free_space(home) if free_bytes(home) < REQUIRED_BYTES else f"see {home.log}"
        raise BoxError(
            f"the box in {home.path} has stopped, but could not save its state: changes since the last save are lost"
            f" ({reason})"
        )
    return True


def has_state(dir: Path) -> bool:
    """True if a box runs in the directory, or if it has a saved cloud or a stack's state."""
    home = _own(dir)
    try:
        return bool(_holder(home)) or os.path.lexists(home.cloud) or any(home.stack_states.rglob("*.json"))
    except OSError as error:
        raise unusable_directory(home, error) from None


def status(dir: Path) -> BoxStatus:
    """The status of the box of the directory; `crashed` if it ended without a stop."""
    home = _own(dir)
    record, switches = _record(home), _switches(home)
    if record is None:
        return BoxStatus(state="stopped", dir=home.path, switches=switches)
    facts: dict[str, Any] = {
        "dir": home.path,
        "url": record["url"],
        "pid": record["pid"],
        "port": record["port"],
        "started": datetime.fromisoformat(record["started"]),
        "switches": switches,
        "no_machines_reason": record.get("no_machines_reason"),
    }
    if _holder(home) != record["pid"]:
        return BoxStatus(state="crashed", **facts)
    problem, faults = _health(home, record["port"])
    if problem is None and record.get("no_machines_reason") is None:
        problem = disk_space_problem(home)
    return BoxStatus(state="running", problem=problem, faults=faults, **facts)


def reset(dir: Path) -> None:
    """Delete everything in the cloud, with the Pulumi states and stack copies that describe it."""
    home = _own(dir)
    now = status(dir)
    if now.state == "running" and now.port:
        send_request(BoxAddress(now.port, _secret(home)), "POST", "/_box/reset")
    else:
        _remove(home.cloud)
        _remove(home.objects)
    for directory in (home.pulumi, home.pulumi_home, home.stacks):
        _remove(directory)
    if now.state == "running":
        _prepare(home, now.switches)


def running_address(dir: Path) -> BoxAddress:
    """Where the running box of the directory answers. Raises BoxError if none runs."""
    now = status(dir)
    if now.state == "running" and now.port:
        return BoxAddress(now.port, _secret(StateDirectory(now.dir)))
    if now.state == "crashed":
        raise BoxError(f"the box in {now.dir} has crashed - `corral box start` resumes from its last saved state")
    raise BoxError(f"no box runs in {now.dir} - start it with `corral box start`")


def environment(dir: Path, role: str | None = None) -> Mapping[str, str]:
    """The variables that point pulumi, aws and boto3 at the running box of the directory.

    `role`: a role of the account, in a new session (default: the account's owner). Raises BoxError.
    """
    address = running_address(dir)
    home = _own(dir)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{address.port}",
        **_credentials(address, role),
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PULUMI_BACKEND_URL": f"file://{home.pulumi}",
        "PULUMI_HOME": str(home.pulumi_home),
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "CORRAL_BOX_DIR": str(home.path),
        "CORRAL_STACKS": str(home.stacks),
        "CORRAL_PYTHON": PYTHON,
        "PATH": path,
        **_image(home),
    }


def _image(home: StateDirectory) -> Mapping[str, str]:
    """The variable that selects the image of the box's machines, unless it is that of the host's system."""
    if _switches(home).machines is Machines.VM:
        return {IMAGE_VARIABLE: VM_PROFILE}
    system = system_of(home)
    return {} if system == HOST_SYSTEM else {IMAGE_VARIABLE: image_profile(system)}


def _credentials(address: BoxAddress, role: str | None) -> Mapping[str, str]:
    if not role:
        return {
            "AWS_ACCESS_KEY_ID": address.secret.owner_key,
            "AWS_SECRET_ACCESS_KEY": address.secret.owner_secret_key,
        }
    session = send_request(address, "POST", f"/_box/session?{urlencode({'role': role})}")
    return {
        "AWS_ACCESS_KEY_ID": session["access_key"],
        "AWS_SECRET_ACCESS_KEY": session["secret_key"],
        "AWS_SESSION_TOKEN": session["token"],
        ROLE_VARIABLE: role,
    }


def _own(dir: Path) -> StateDirectory:
    """The state directory, which may be missing. Raises BoxError if another user may have written it."""
    home = StateDirectory(dir.absolute())
    try:
        problem = ownership_problem(home.path, home.path.stat())
    except OSError:
        return home  # its use reports it
    if problem:
        raise BoxError(problem)
    return home


def _prepare(home: StateDirectory, switches: Switches) -> None:
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.pulumi.mkdir(mode=0o700, exist_ok=True)
        provider.install(home.pulumi_home, switches.provider)
    except provider.PluginMissing as error:
        raise BoxError(str(error)) from None
    except OSError as error:
        raise unusable_directory(home, error) from None


def _require_provider(home: StateDirectory, held: Provider, wanted: Provider) -> None:
    """Raises BoxError for another provider than that of the stacks: neither reads what the other saved."""
    if held is not wanted and any(home.stack_states.rglob("*.json")):
        raise BoxError(
            f"the stacks in {home.path} were deployed with --provider {held}, not {wanted} - run `corral box reset`, or"
            " choose another directory with --dir"
        )


def _require_machines(home: StateDirectory, held: Machines, wanted: Machines) -> None:
    """Raises BoxError if machines of another kind have disks, which neither can read."""
    if held is not wanted and Machines.VM in (held, wanted) and any((home.machines / "disks").glob("i-*")):
        raise BoxError(
            f"the machines in {home.path} are of --machines {held}, not {wanted} - run `corral down`, or choose another"
            " directory with --dir"
        )


def _set_system(home: StateDirectory, wanted: Path | None) -> None:
    """Record the machines' system. Existing disks work only with the system that created them."""
    if wanted is None or wanted.absolute() == system_of(home):
        return
    if has_state(home.path):
        raise BoxError(
            f"the box in {home.path} uses the system in {system_of(home)}, not {wanted} - choose another directory with"
            " --dir"
        )
    profile = image_profile(wanted)
    _remove(home.system)
    if profile != BOX_PROFILE:
        home.system.symlink_to(wanted.absolute())


def _await_other(dir: Path) -> BoxStatus:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        now = status(dir)
        if now.state == "running":
            return now
        time.sleep(0.05)  # another process starts it, so there is no child to wait for
    raise BoxError(f"another process starts the box in {dir}, but it is not ready - stop it with `corral box stop`")


def _holder(home: StateDirectory) -> int | None:
    try:
        return lock.holder_pid(home.lock)
    except OSError as error:
        raise unusable_directory(home, error) from None


def _record(home: StateDirectory) -> dict[str, Any] | None:
    """The daemon's own record; None if it is missing or damaged: the next start rewrites it."""
    try:
        record = dict(json.loads(home.record.read_text()))
        datetime.fromisoformat(record["started"])
        return record if {"pid", "port", "url"} <= record.keys() else None
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        return None
    except OSError as error:
        raise unusable_directory(home, error) from None


def _switches(home: StateDirectory) -> Switches:
    try:
        return switches_of(home.switches)
    except OSError as error:
        raise unusable_directory(home, error) from None


def _health(home: StateDirectory, port: int) -> tuple[str | None, tuple[str, ...]]:
    """The problem of the box as a sentence, if it has one, and its active faults."""
    try:
        answer = send_request(BoxAddress(port, _secret(home)), "GET", "/_box/health")
    except BoxError as error:
        return str(error), ()
    problem, faults = answer.get("problem"), tuple(answer.get("faults", ()))
    if problem and any(os.strerror(number) in problem for number in DISK_FULL):
        return f"{problem}: {describe_free_space(home)} - free some, or new changes are lost when the box ends", faults
    return None if problem is None else str(problem), faults


def _secret(home: StateDirectory) -> BoxSecret:
    try:
        return read_secret(home)
    except (OSError, ValueError) as error:
        raise unusable_directory(home, error) from None


def _identity(path: Path) -> tuple[int, int] | None:
    """A value that changes with every save, because each save replaces the file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _remove(path: Path) -> None:
    """Remove a file, or a directory with its contents."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return  # another process removed it
    except OSError as error:
        raise BoxError(f"{error.filename or path} cannot be removed: {error.strerror}") from None
