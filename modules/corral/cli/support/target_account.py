"""Selects the account of a command: that of the shell's AWS settings, or the box."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from corral.box import client
from corral.box.daemon.daemon_process import BoxError
from corral.box.state.directory import default_directory
from corral.cli.support.exit_codes import ExitCode, Failure


def use_account(*, in_box: bool, box_directory: Path | None) -> None:
    """Points this process and its children at the box if it is selected; otherwise changes nothing.

    Raises Failure if the box is selected and does not run.
    """
    if not in_box and box_directory is None:
        return
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        os.environ.pop(name, None)  # settings of a real account must not reach the box
    try:
        os.environ.update(client.environment(resolve_box_dir(box_directory), box_role()))
    except BoxError as error:
        raise Failure(str(error), ExitCode.CANNOT_START) from None


def box_owner(box_directory: Path | None) -> Mapping[str, str]:
    """The variables of the account's owner in the selected box, which must run."""
    return client.environment(resolve_box_dir(box_directory))


def box_role() -> str | None:
    """The role in the box that CORRAL_BOX_ROLE selects; None for the account's owner."""
    return os.environ.get(client.ROLE_VARIABLE) or None


def account_option(*, in_box: bool, box_directory: Path | None) -> str:
    """The end of suggested command lines that selects the same account as this one.

    It starts with a space; empty if the shell's settings select the account, including those of `corral box env`.
    """
    if box_directory is not None:
        return f" --box-dir {shlex.quote(str(box_directory))}"
    return " --box" if in_box else ""


def targeted_box(box_directory: Path | None) -> client.BoxStatus | None:
    """The box that the AWS settings of this process point at; None for AWS itself."""
    if not (endpoint := os.environ.get("AWS_ENDPOINT_URL")):
        return None
    now = client.status(resolve_box_dir(box_directory))
    return now if endpoint == now.url else None


def resolve_box_dir(chosen: Path | None) -> Path:
    """The state directory of the selected box."""
    return chosen.absolute() if chosen is not None else default_directory()
