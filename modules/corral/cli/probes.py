"""Looks at this machine for `corral doctor`: programs, libraries, settings, space. Nothing leaves the machine."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from corral import __version__
from corral.box import control
from corral.box.process import BoxError
from corral.cli.failure import Failure
from corral.cli.project import find_project
from corral.engine.binary import OLDEST, find_pulumi
from corral.engine.environment import backend_url
from corral.engine.errors import EngineError
from corral.report.doctor import Finding, Platform, Purpose, clock_finding, is_at_least

ANSWER_S = 20  # for `--version`; the slowest, cloud-init, takes about one
FREE_GIB = 5  # a built Pulumi, its plugins and a box's state
PLAN, AWS, BOX, SLURM, CONNECT = Purpose
NEXT_PULUMI = 4  # another major version may read no state of this one
NAMESPACES = ("unshare", "--user", "--map-root-user", "--net", "--mount", "true")  # what box/slurm.py enters
# The oldest that does. Sources: AWS CLI User Guide, "Configuring IAM Identity Center" (version 2); Systems Manager User
# Guide, "Install the Session Manager plugin".
OLDEST_PROGRAM = {"aws": "2", "session-manager-plugin": "1.2.764.0"}
PLUGIN_PAGE = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)
# Program, the option that makes it tell its version, what needs it, how to get it.
PROGRAMS = (
    ("slurmctld", "-V", (SLURM,), "apt-get install slurmctld, or `make debian`"),
    ("slurmd", "-V", (SLURM,), "apt-get install slurmd, or `make debian`"),
    ("slurmdbd", "-V", (SLURM,), "apt-get install slurmdbd, or `make debian`"),
    ("mariadbd", "--version", (SLURM,), "apt-get install mariadb-server, or `make debian`"),
    ("munged", "--version", (SLURM,), "apt-get install munge, or `make debian`"),
    ("shellcheck", "--version", (), "apt-get install shellcheck (only corral's own tests use it)"),
    ("cloud-init", "--version", (), "apt-get install cloud-init (only corral's own tests use it)"),
    ("go", "version", (), "https://go.dev/dl (only needed to build Pulumi where no official one can be had)"),
    ("aws", "--version", (CONNECT,), "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"),
    ("session-manager-plugin", "--version", (CONNECT,), PLUGIN_PAGE),
)


def look(environ: Mapping[str, str], box: Path, identity: Callable[[], str] | None) -> tuple[Finding, ...]:
    """Everything that was looked for, in the order in which it is shown. `identity` asks AWS who one is."""
    probes: list[Callable[[], Finding]] = [
        _python,
        _corral,
        partial(_pulumi, environ),
        partial(_plugin, environ),
        _moto,
    ]
    probes += [_linux, _namespaces, _clock, partial(_credentials, environ, identity), partial(_backend, environ)]
    probes += [partial(_space, box), partial(_daemon, box)]
    probes += [partial(_program, *program) for program in PROGRAMS]
    with ThreadPoolExecutor(max_workers=8) as pool:
        return tuple(pool.map(lambda probe: probe(), probes))


def _python() -> Finding:
    return Finding(name="Python", found=f"{platform.python_version()}, {sys.executable}", needed_for=(PLAN,), fix="")


def _corral() -> Finding:
    where = Path(__file__).parents[1]
    return Finding(name="corral", found=f"{__version__}, {where}", needed_for=(PLAN,), fix="")


def _pulumi(environ: Mapping[str, str]) -> Finding:
    fix = "curl -fsSL https://get.pulumi.com | sh, or `make pulumi` in corral's source directory"
    try:
        found = find_pulumi(environ)
    except EngineError as error:
        return Finding(name="Pulumi", found=None, needed_for=(AWS, BOX), fix=f"{error.sentence}: {fix}")
    if found.version[0] >= NEXT_PULUMI:
        fix = f"{found.path} is Pulumi {'.'.join(map(str, found.version))}, newer than corral knows: {fix}"
        return Finding(name="Pulumi", found=None, needed_for=(AWS, BOX), fix=fix)
    host = "its own language host" if len(found.search) == 1 else "corral's language host"
    number = ".".join(map(str, found.version))
    needed = f"{'.'.join(map(str, OLDEST[:2]))} or newer is needed"
    told = f"{number} ({needed}), {found.path}, with {host}"
    return Finding(name="Pulumi", found=told, needed_for=(AWS, BOX), fix=fix)


def _plugin(environ: Mapping[str, str]) -> Finding:
    home = Path(environ.get("PULUMI_HOME") or Path(environ.get("HOME", "/")) / ".pulumi")
    found = sorted(path.name for path in (home / "plugins").glob("resource-aws-v*") if path.is_dir())
    number = _version("pulumi-aws")
    fix = f"the first up fetches it, or: pulumi plugin install resource aws {number} (the box has a stand-in)"
    return Finding(name="AWS plugin", found=found[-1] if found else None, needed_for=(), fix=fix)


def _moto() -> Finding:
    there = all(importlib.util.find_spec(name) for name in ("moto", "grpc", "werkzeug"))
    found = f"moto {_version('moto')}, grpcio {_version('grpcio')}" if there else None
    return Finding(name="box libraries", found=found, needed_for=(BOX,), fix="pip install 'corral[box]'")


def _linux() -> Finding:
    found = f"{platform.system()} {platform.release()}" if sys.platform == "linux" else None
    return Finding(name="Linux", found=found, needed_for=(BOX, SLURM), fix="use a Linux machine, or WSL")


def platform_facts() -> Platform:
    """What this system tells of itself."""
    return Platform(
        system=platform.system(),
        release=platform.release(),
        machine=platform.machine(),
        directory=os.environ.get("PWD", "/"),
    )


def _namespaces() -> Finding:
    """Whether the box may enter namespaces of its own, in which its Slurm runs."""
    fix = "run as root, or allow user namespaces: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu"
    try:
        done = subprocess.run(NAMESPACES, capture_output=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Finding(name="namespaces", found=None, needed_for=(SLURM,), fix="apt-get install util-linux")
    found = "can be entered" if done.returncode == 0 else None
    return Finding(name="namespaces", found=found, needed_for=(SLURM,), fix=fix)


def _clock() -> Finding:
    command = ("timedatectl", "show", "--property", "NTPSynchronized", "--value")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return clock_finding(None)
    return clock_finding(done.stdout.strip() if done.returncode == 0 else None)


def _credentials(environ: Mapping[str, str], identity: Callable[[], str] | None) -> Finding:
    found = identity() if identity else _configured(environ)
    fix = "`aws sso login`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return Finding(name="credentials", found=found, needed_for=(AWS, CONNECT), fix=fix)


def _configured(environ: Mapping[str, str]) -> str | None:
    if environ.get("AWS_ENDPOINT_URL"):
        return f"of the box at {environ['AWS_ENDPOINT_URL']}"
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return "in the environment, not tried (--online tries them)"
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        default = Path(environ.get("HOME", "/")) / ".aws" / ("config" if "CONFIG" in name else "credentials")
        if (file := Path(environ.get(name) or default)).is_file():
            return f"profile {environ.get('AWS_PROFILE', 'default')} in {file}, not tried (--online tries it)"
    return None


def _backend(environ: Mapping[str, str]) -> Finding:
    found: str | None = None
    try:
        found = backend_url(environ, find_project() / "stacks")
    except Failure:
        found = environ.get("PULUMI_BACKEND_URL")
    except EngineError:
        pass  # its sentence says what the fix below says
    fix = (
        "`corral bootstrap` makes one; then export PULUMI_BACKEND_URL='s3://BUCKET?region=REGION' (the box has its own)"
    )
    return Finding(name="state backend", found=found or None, needed_for=(AWS,), fix=fix)


def _space(box: Path) -> Finding:
    place = next(one for one in (box, *box.absolute().parents) if one.exists())
    free = shutil.disk_usage(place).free / 2**30
    fix = f"{place} has {free:.1f} GiB free, {FREE_GIB} are needed: free some, or choose another --box-dir"
    return Finding(
        name="disk", found=f"{free:,.0f} GiB free at {place}" if free >= FREE_GIB else None, needed_for=(BOX,), fix=fix
    )


def _daemon(box: Path) -> Finding:
    try:
        now = control.status(box)
    except BoxError as error:
        return Finding(name="box", found=None, needed_for=(BOX,), fix=str(error))
    text = f"runs at {now.url}" if now.state == "running" else f"{now.state}; `corral box start` starts it"
    return Finding(name="box", found=f"{text} ({now.dir})", needed_for=(), fix="")


def _program(name: str, option: str, needed_for: Sequence[Purpose], fix: str) -> Finding:
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    told, least = _told(path, option) if path else "", OLDEST_PROGRAM.get(name, "")
    if least and told[:1].isdigit() and not is_at_least(told, least):
        old = f"{path} is {told}, {least} or newer is needed: {fix}"
        return Finding(name=name, found=None, needed_for=tuple(needed_for), fix=old)
    return Finding(name=name, found=f"{told}, {path}" if path else None, needed_for=tuple(needed_for), fix=fix)


def _told(path: str, option: str) -> str:
    try:
        done = subprocess.run([path, option], capture_output=True, text=True, timeout=ANSWER_S, env={**os.environ})
    except (OSError, subprocess.TimeoutExpired):
        return "does not answer"
    number = re.search(r"\d+\.\d+(\.\d+)*", done.stdout + done.stderr)
    return number[0] if number else "of unknown version"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"
