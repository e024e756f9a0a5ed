"""`corral lint-env`: a user's NCCL and EFA variables, judged."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from corral.catalog.instances import InstanceType, find_instance_type
from corral.catalog.nccl_variables import Version, parse_version
from corral.cli.failure import ExitCode, Failure
from corral.cli.options import AsJson, examples, new_app
from corral.cli.screen import show, show_json
from corral.plan.env_text import assignments_in
from corral.plan.lint_env import Context, UnknownInstaller, assumed_versions, installer_note, judge
from corral.report.lint import lint_document, lint_view

app = new_app()
_MOST_BYTES = 4 << 20  # nobody's environment or script is that long; a data set by mistake is
_PARTS = 3  # of a version, as the catalogue writes them
File = Annotated[str, typer.Argument(metavar="FILE", help="What `env` printed, a script, a Dockerfile; - for stdin.")]
Type = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="The instance type; else any with NVIDIA GPUs.")
]
_VERSION = "Its version; else the newest known, or what --installer brings."
Plugin = Annotated[str | None, typer.Option("--plugin", metavar="VERSION", help=f"aws-ofi-nccl. {_VERSION}")]
Libfabric = Annotated[str | None, typer.Option("--libfabric", metavar="VERSION", help=f"libfabric. {_VERSION}")]
Nccl = Annotated[
    str | None, typer.Option("--nccl", metavar="VERSION", help="NCCL. Its version; else the newest known.")
]
Installer = Annotated[str | None, typer.Option("--installer", metavar="VERSION", help="The EFA installer's version.")]


@app.command(
    epilog=examples(
        "corral lint-env train.sbatch --type p5.48xlarge",
        "env | corral lint-env -",
        "corral lint-env Dockerfile --installer 1.43.2 --json",
    ),
)
def lint_env(
    file: File,
    type: Type = None,
    plugin: Plugin = None,
    libfabric: Libfabric = None,
    nccl: Nccl = None,
    installer: Installer = None,
    json: AsJson = False,
) -> None:
    """Judge NCCL_*, FI_*, OFI_* and RDMAV_* variables: wrong, harmful, needless, fine.

    Reads what `env` prints, export lines, `NAME=value command`, #SBATCH --export, a Dockerfile, a whole script,
    nccl.conf, YAML and Python. Exit code 2 where something is wrong or harmful (docs/lint-env.md lists what is known).
    """
    texts = {"installer": installer, "plugin": plugin, "libfabric": libfabric, "nccl": nccl}
    given = {name: _version(name, text) for name, text in texts.items() if text is not None}
    context, note = _context(find_instance_type(type) if type else None, given), installer_note(given)
    findings = judge(assignments_in(_read(file)), context)
    if json:
        show_json(lint_document(findings, file, context, note))
    else:
        show(lint_view(findings, file, context, note))
    if any(finding.is_bad for finding in findings):
        raise typer.Exit(ExitCode.WRONG_INPUT)


def _context(instance_type: InstanceType | None, given: Mapping[str, Version]) -> Context:
    try:
        return Context(instance_type=instance_type, versions=assumed_versions(given))
    except UnknownInstaller as error:
        raise Failure(str(error), ExitCode.WRONG_INPUT) from None


def _version(name: str, text: str) -> Version:
    try:
        version = parse_version(text)
        return version + (0,) * (_PARTS - len(version))  # 1.51 means 1.51.0, and would sort before it
    except ValueError as error:
        raise Failure(f"--{name}: {error}", ExitCode.WRONG_INPUT) from None


def _read(file: str) -> str:
    data = _bytes(file)
    if len(data) > _MOST_BYTES:
        raise Failure(f"{file} has more than {_MOST_BYTES >> 20} MiB: that is no environment", ExitCode.WRONG_INPUT)
    if b"\0" in data:
        raise Failure(f"{file} is no text - name a script, a Dockerfile or what `env` printed", ExitCode.WRONG_INPUT)
    if not data.strip():
        raise Failure(f"{_name(file)} is empty - `env | corral lint-env -` judges this shell", ExitCode.WRONG_INPUT)
    return data.decode("utf-8", errors="replace")


def _name(file: str) -> str:
    return "stdin" if file == "-" else file


def _bytes(file: str) -> bytes:
    if file == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise Failure("stdin is a terminal - `env | corral lint-env -` judges this shell", ExitCode.WRONG_INPUT)
        return sys.stdin.buffer.read(_MOST_BYTES + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", ExitCode.WRONG_INPUT) from None
