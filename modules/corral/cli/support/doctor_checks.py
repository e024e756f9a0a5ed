"""The checks of `corral doctor`: programs, libraries, settings, disk space. They contact no server."""

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
from corral.box import client
from corral.box.daemon.daemon_process import BoxError
from corral.cli.support.exit_codes import Failure
from corral.cli.support.project import find_project
from corral.engine.engine_errors import EngineError
from corral.engine.pulumi.binary import OLDEST, find_pulumi
from corral.engine.pulumi.environment import backend_url
from corral.report.doctor_view import DoctorFinding, Platform, Purpose, clock_finding, is_at_least

ANSWER_S = 20  # for `--version`; the slowest program, cloud-init, takes about 1 s
FREE_GIB = 5  # for a built Pulumi, its plugins and a box's state
PLAN, AWS, BOX, SLURM, CONNECT = Purpose
NEXT_PULUMI = 4  # another major version may not read this state
NAMESPACES = ("unshare", "--user", "--map-root-user", "--net", "--mount", "true")  # as the box enters them
# Oldest supported versions. AWS CLI User Guide, "Configuring IAM Identity Center" (version 2); Systems Manager User
# Guide, "Install the Session Manager plugin".
OLDEST_PROGRAM = {"aws": "2", "session-manager-plugin": "1.2.764.0"}
PLUGIN_PAGE = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)
# Program, option that prints its version, what needs it, how to install it.
PROGRAMS = (
    ("slurmctld", "-V", (SLURM,), "apt-get install slurmctld, or `make debian`"),
    ("slurmd", "-V", (SLURM,), "apt-get install slurmd, or `make debian`"),
    ("slurmdbd", "-V", (SLURM,), "apt-get install slurmdbd, or `make debian`"),
    ("mariadbd", "--version", (SLURM,), "apt-get install mariadb-server, or `make debian`"),
    ("munged", "--version", (SLURM,), "apt-get install munge, or `make debian`"),
    ("shellcheck", "--version", (), "apt-get install shellcheck (only for corral's own tests)"),
    ("cloud-init", "--version", (), "apt-get install cloud-init (only for corral's own tests)"),
    ("go", "version", (), "https://go.dev/dl (only to build Pulumi where the official one is unavailable)"),
    ("aws", "--version", (CONNECT,), "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"),
    ("session-manager-plugin", "--version", (CONNECT,), PLUGIN_PAGE),
)


def run_checks(environ: Mapping[str, str], box: Path, identity: Callable[[], str] | None) -> tuple[DoctorFinding, ...]:
    """Runs all checks. Returns the findings in display order. `identity`: verifies the credentials with AWS."""
    probes: list[Callable[[], DoctorFinding]] = [
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


def _python() -> DoctorFinding:
    return DoctorFinding(
        name="Python", found=f"{platform.python_version()}, {sys.executable}", needed_for=(PLAN,), fix=""
    )


def _corral() -> DoctorFinding:
    where = Path(__file__).parents[2]
    return DoctorFinding(name="corral", found=f"{__version__}, {where}", needed_for=(PLAN,), fix="")


def _pulumi(environ: Mapping[str, str]) -> DoctorFinding:
    fix = "curl -fsSL https://get.pulumi.com | sh, or `make pulumi` in corral's source directory"
    try:
        found = find_pulumi(environ)
    except EngineError as error:
        return DoctorFinding(name="Pulumi", found=None, needed_for=(AWS, BOX), fix=f"{error.sentence}: {fix}")
    if found.version[0] >= NEXT_PULUMI:
        fix = f"{found.path} is Pulumi {'.'.join(map(str, found.version))}, newer than corral supports: {fix}"
        return DoctorFinding(name="Pulumi", found=None, needed_for=(AWS, BOX), fix=fix)
    host = "its own language host" if len(found.search) == 1 else "corral's language host"
    number = ".".join(map(str, found.version))
    oldest = f"{'.'.join(map(str, OLDEST[:2]))} or newer required"
    text = f"{number} ({oldest}), {found.path}, with {host}"
    return DoctorFinding(name="Pulumi", found=text, needed_for=(AWS, BOX), fix=fix)


def _plugin(environ: Mapping[str, str]) -> DoctorFinding:
    home = Path(environ.get("PULUMI_HOME") or Path(environ.get("HOME", "/")) / ".pulumi")
    found = sorted(path.name for path in (home / "plugins").glob("resource-aws-v*") if path.is_dir())
    number = _version("pulumi-aws")
    fix = f"downloaded by the first `corral up`, or: pulumi plugin install resource aws {number} (the box needs none)"
    return DoctorFinding(name="AWS plugin", found=found[-1] if found else None, needed_for=(), fix=fix)


def _moto() -> DoctorFinding:
    there = all(importlib.util.find_spec(name) for name in ("moto", "grpc", "werkzeug"))
    found = f"moto {_version('moto')}, grpcio {_version('grpcio')}" if there else None
    return DoctorFinding(name="box libraries", found=found, needed_for=(BOX,), fix="pip install 'corral[box]'")


def _linux() -> DoctorFinding:
    found = f"{platform.system()} {platform.release()}" if sys.platform == "linux" else None
    return DoctorFinding(name="Linux", found=found, needed_for=(BOX, SLURM), fix="use a Linux machine, or WSL")


def read_platform() -> Platform:
    """The facts about this system."""
    return Platform(
        system=platform.system(),
        release=platform.release(),
        machine=platform.machine(),
        directory=os.environ.get("PWD", "/"),
    )


def _namespaces() -> DoctorFinding:
    """Whether the box can create namespaces, in which its Slurm runs."""
    fix = "run as root, or allow user namespaces: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu"
    try:
        done = subprocess.run(NAMESPACES, capture_output=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return DoctorFinding(name="namespaces", found=None, needed_for=(SLURM,), fix="apt-get install util-linux")
    found = "available" if done.returncode == 0 else None
    return DoctorFinding(name="namespaces", found=found, needed_for=(SLURM,), fix=fix)


def _clock() -> DoctorFinding:
    command = ("timedatectl", "show", "--property", "NTPSynchronized", "--value")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return clock_finding(None)
    return clock_finding(done.stdout.strip() if done.returncode == 0 else None)


def _credentials(environ: Mapping[str, str], identity: Callable[[], str] | None) -> DoctorFinding:
    found = identity() if identity else _configured(environ)
    fix = "`aws sso login`, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return DoctorFinding(name="credentials", found=found, needed_for=(AWS, CONNECT), fix=fix)


def _configured(environ: Mapping[str, str]) -> str | None:
    if environ.get("AWS_ENDPOINT_URL"):
        return f"of the box at {environ['AWS_ENDPOINT_URL']}"
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return "in the environment, not verified (see --online)"
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        default = Path(environ.get("HOME", "/")) / ".aws" / ("config" if "CONFIG" in name else "credentials")
        if (file := Path(environ.get(name) or default)).is_file():
            return f"profile {environ.get('AWS_PROFILE', 'default')} in {file}, not verified (see --online)"
    return None


def _backend(environ: Mapping[str, str]) -> DoctorFinding:
    found: str | None = None
    try:
        found = backend_url(environ, find_project() / "stacks")
    except Failure:
        found = environ.get("PULUMI_BACKEND_URL")
    except EngineError:
        pass  # the fix below says the same
    fix = "`corral bootstrap` creates one; export PULUMI_BACKEND_URL='s3://BUCKET?region=REGION' (the box has its own)"
    return DoctorFinding(name="state backend", found=found or None, needed_for=(AWS,), fix=fix)


def _space(box: Path) -> DoctorFinding:
    directory = next(one for one in (box, *box.absolute().parents) if one.exists())
    free = shutil.disk_usage(directory).free / 2**30
    fix = f"{directory} has {free:.1f} GiB free and needs {FREE_GIB}: free some, or choose another --box-dir"
    return DoctorFinding(
        name="disk",
        found=f"{free:,.0f} GiB free at {directory}" if free >= FREE_GIB else None,
        needed_for=(BOX,),
        fix=fix,
    )


def _daemon(box: Path) -> DoctorFinding:
    try:
        now = client.status(box)
    except BoxError as error:
        return DoctorFinding(name="box", found=None, needed_for=(BOX,), fix=str(error))
    text = f"runs at {now.url}" if now.state == "running" else f"{now.state}; `corral box start` starts it"
    return DoctorFinding(name="box", found=f"{text} ({now.dir})", needed_for=(), fix="")


def _program(name: str, option: str, needed_for: Sequence[Purpose], fix: str) -> DoctorFinding:
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    printed, least = _printed_version(path, option) if path else "", OLDEST_PROGRAM.get(name, "")
    if least and printed[:1].isdigit() and not is_at_least(printed, least):
        old = f"{path} is {printed}, {least} or newer required: {fix}"
        return DoctorFinding(name=name, found=None, needed_for=tuple(needed_for), fix=old)
    return DoctorFinding(name=name, found=f"{printed}, {path}" if path else None, needed_for=tuple(needed_for), fix=fix)


def _printed_version(path: str, option: str) -> str:
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
