"""What the commands that use the engine share: common options, confirmation, and the start of a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.box import client
from corral.cli.support.exit_codes import Failure
from corral.cli.support.output import confirm, show_json
from corral.cli.support.project import find_project
from corral.cli.support.target_account import account_option, box_role, resolve_box_dir

if TYPE_CHECKING:
    from corral.engine.lifecycle.session import EngineSession


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """The options that all these commands have."""

    project: Path | None
    in_box: bool
    box_directory: Path | None
    json: bool
    wait: bool

    @property
    def source(self) -> Path:
        """The project directory."""
        return _source(self, _target_box(self))

    @property
    def account_option(self) -> str:
        """The end of suggested command lines that selects the same account."""
        return account_option(in_box=self.in_box, box_directory=self.box_directory)

    @property
    def unused_box(self) -> Path | None:
        """The directory of the selected box if it does not run and has no saved state; otherwise None."""
        box = _target_box(self)
        return None if box is None or client.has_state(box) else box

    def require_disk_space(self) -> None:
        """Raises BoxError if the selected box lacks disk space for machines."""
        if (box := _target_box(self)) is not None:
            client.require_disk_space_to_boot(box)

    @property
    def box_problem(self) -> str | None:
        """The problem of the selected box, as a sentence; None if there is none."""
        box = _target_box(self)
        return None if box is None else client.status(box).problem

    def write(self, text: str) -> None:
        """Prints a message that is not part of the result."""
        from corral.engine.progress.progress_display import default_display

        default_display(quiet_stdout=self.json).write(text)

    def confirmation(self) -> Callable[[str], bool]:
        """The function that asks for confirmation. Raises EngineError without a terminal."""
        import sys

        from corral.engine.lifecycle.up import no_terminal_error

        if self.json or not sys.stdin.isatty():
            raise no_terminal_error()
        return confirm

    def show_result(self, document: Mapping[str, Any]) -> None:
        """Prints the result with --json; otherwise progress has shown it already."""
        if self.json:
            show_json(document)


def start_session(options: CommonOptions) -> EngineSession:
    """Opens an engine session for the project. Starts the selected box if it does not run."""
    from corral.engine.backend.backend_space import require_space
    from corral.engine.lifecycle.session import open_engine_session
    from corral.engine.progress.progress_display import default_display
    from corral.engine.pulumi.binary import find_pulumi
    from corral.engine.pulumi.projects import box_image, sync_box_copy

    printer = default_display(quiet_stdout=options.json)
    box = _target_box(options)
    stacks = _source(options, box) / "stacks"
    if box is None:
        return open_engine_session(stacks, printer, wait=options.wait)
    if client.status(box).state != "running":
        find_pulumi()  # without Pulumi, do not start the box
        printer.write(f"starting the box in {box}")
        client.start(box)
    require_space(box)
    variables = client.environment(box, box_role())
    copy = sync_box_copy(stacks, box / "stacks", box_image(variables))
    return open_engine_session(
        copy,
        printer,
        box=variables,
        owner=client.environment(box),
        wait=options.wait,
        account_option=options.account_option,
    )


def _target_box(options: CommonOptions) -> Path | None:
    """The directory of the box that --box or the variables of `corral box env` select; None for an account."""
    if options.in_box or options.box_directory is not None:
        return resolve_box_dir(options.box_directory).absolute()
    stacks, box = os.environ.get("CORRAL_STACKS"), os.environ.get("CORRAL_BOX_DIR")
    if stacks and box and Path(stacks).resolve() == Path(box, "stacks").resolve():
        return Path(box).absolute()
    return None


def _source(options: CommonOptions, box: Path | None) -> Path:
    """The project directory. In the box: the user's own project, or the box's copy if there is none."""
    if options.project is None and box is not None:
        try:
            return find_project(environ={})
        except Failure:
            if (box / "stacks" / "cluster").is_dir():
                return box
            raise
    return find_project(options.project)
