"""`corral lint-env`: checks a user's NCCL and EFA variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from corral.catalog.aws.instance_types import InstanceType, find_instance_type
from corral.catalog.aws.nccl_variables import Version, parse_version
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import AsJson, examples, new_app
from corral.cli.support.output import show, show_json
from corral.plan.nccl_env.env_parser import assignments_in
from corral.plan.nccl_env.lint_env import Context, UnknownInstaller, assumed_versions, installer_warning, lint
from corral.report.lint_view import lint_document, lint_view

app = new_app()
_MAX_BYTES = 4 << 20  # no environment or script is that long; a data set given by mistake is
_PARTS = 3  # of a version, as the catalog writes them
File = Annotated[str, typer.Argument(metavar="FILE", help="Output of `env`, a script or a Dockerfile; - for stdin.")]
Type = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Instance type (default: any with NVIDIA GPUs).")
]
_DEFAULT = "(default: that of --installer, or the newest known)"
Plugin = Annotated[str | None, typer.Option("--plugin", metavar="VERSION", help=f"Version of aws-ofi-nccl {_DEFAULT}.")]
Libfabric = Annotated[
    str | None, typer.Option("--libfabric", metavar="VERSION", help=f"Version of libfabric {_DEFAULT}.")
]
Nccl = Annotated[
    str | None, typer.Option("--nccl", metavar="VERSION", help="Version of NCCL (default: the newest known).")
]
Installer = Annotated[str | None, typer.Option("--installer", metavar="VERSION", help="Version of the EFA installer.")]


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
    """Check NCCL and EFA environment variables.

    Rates each NCCL_*, FI_*, OFI_* and RDMAV_* variable as wrong, harmful, needless or fine. Reads the output of `env`,
    export lines, `NAME=value command`, #SBATCH --export, Dockerfiles, scripts, nccl.conf, YAML and Python. The exit
    code is 2 if a variable is wrong or harmful. docs/lint-env.md lists the rules.
    """
    texts = {"installer": installer, "plugin": plugin, "libfabric": libfabric, "nccl": nccl}
    given = {name: _version(name, text) for name, text in texts.items() if text is not None}
    context = _context(find_instance_type(type) if type else None, given)
    warning = installer_warning(given)
    findings = lint(assignments_in(_read(file)), context)
    if json:
        show_json(lint_document(findings, file, context, warning))
    else:
        show(lint_view(findings, file, context, warning))
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
    if len(data) > _MAX_BYTES:
        raise Failure(f"{file} is larger than {_MAX_BYTES >> 20} MiB: not an environment file", ExitCode.WRONG_INPUT)
    if b"\0" in data:
        raise Failure(
            f"{file} is not a text file - give a script, a Dockerfile or the output of `env`", ExitCode.WRONG_INPUT
        )
    if not data.strip():
        raise Failure(f"{_name(file)} is empty - `env | corral lint-env -` checks this shell", ExitCode.WRONG_INPUT)
    return data.decode("utf-8", errors="replace")


def _name(file: str) -> str:
    return "stdin" if file == "-" else file


def _bytes(file: str) -> bytes:
    if file == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise Failure("stdin is a terminal - `env | corral lint-env -` checks this shell", ExitCode.WRONG_INPUT)
        return sys.stdin.buffer.read(_MAX_BYTES + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", ExitCode.WRONG_INPUT) from None
