"""What `up` and `down` share: where they work, whom they ask, and how the engine room's errors are told."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.box import control
from corral.cli.account import account_option, box_state
from corral.cli.failure import Failure
from corral.cli.project import find_project
from corral.cli.screen import ask, show_json

if TYPE_CHECKING:
    from corral.engine.workplace import Workplace


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The options that both commands have."""

    project: Path | None
    in_box: bool
    box_directory: Path | None
    json: bool
    wait: bool

    @property
    def source(self) -> Path:
        """The project directory that the user means."""
        return _source(self, _box_that_is_meant(self))

    @property
    def account_option(self) -> str:
        """What command lines that are told to somebody end with."""
        return account_option(in_box=self.in_box, box_directory=self.box_directory)

    @property
    def empty_box(self) -> Path | None:
        """The box that is meant, where nothing can be up in it: it does not run, and nothing was ever saved there."""
        box = _box_that_is_meant(self)
        return None if box is None or control.has_state(box) else box

    def require_room(self) -> None:
        """Raises BoxError where the box that is meant has no room for machines."""
        if (box := _box_that_is_meant(self)) is not None:
            control.require_room_to_boot(box)

    @property
    def trouble(self) -> str | None:
        """What is wrong with the box that is meant, a sentence."""
        box = _box_that_is_meant(self)
        return None if box is None else control.status(box).problem

    def say(self, text: str) -> None:
        """Tells the user something beside the result."""
        from corral.engine.printers import default_printer

        default_printer(quiet_stdout=self.json).say(text)

    def asker(self) -> Callable[[str], bool]:
        """Who asks the user. Raises EngineError where nobody can be asked."""
        import sys

        from corral.engine.up import refuse_unasked

        if self.json or not sys.stdin.isatty():
            raise refuse_unasked()
        return ask

    def show(self, document: Mapping[str, Any]) -> None:
        """Prints the result where a document was asked for; people have seen it happen."""
        if self.json:
            show_json(document)


def set_up(bench: Bench) -> Workplace:
    """The workplace for the project; a box that is meant and does not run is started."""
    from corral.engine.binary import find_pulumi
    from corral.engine.disk import require_space
    from corral.engine.printers import default_printer
    from corral.engine.projects import box_image, sync
    from corral.engine.workplace import open_workplace

    printer = default_printer(quiet_stdout=bench.json)
    box = _box_that_is_meant(bench)
    stacks = _source(bench, box) / "stacks"
    if box is None:
        return open_workplace(stacks, printer, wait=bench.wait)
    if control.status(box).state != "running":
        find_pulumi()  # what could not go on begins nothing
        printer.say(f"starting the box in {box}")
        control.start(box, machines=True)
    require_space(box)
    variables = control.environment(box)
    copy = sync(stacks, box / "stacks", box_image(variables))
    return open_workplace(copy, printer, box=variables, wait=bench.wait, account_option=bench.account_option)


def _box_that_is_meant(bench: Bench) -> Path | None:
    """The box's directory where --box says so, or the variables of `corral box env`."""
    if bench.in_box or bench.box_directory is not None:
        return box_state(bench.box_directory).absolute()
    stacks, box = os.environ.get("CORRAL_STACKS"), os.environ.get("CORRAL_BOX_DIR")
    if stacks and box and Path(stacks).resolve() == Path(box, "stacks").resolve():
        return Path(box).absolute()
    return None


def _source(bench: Bench, box: Path | None) -> Path:
    """The project. In the box that is the user's own, not the box's copy of it, where one can be found."""
    if bench.project is None and box is not None:
        try:
            return find_project(environ={})
        except Failure:
            if (box / "stacks" / "cluster").is_dir():
                return box
            raise
    return find_project(bench.project)
