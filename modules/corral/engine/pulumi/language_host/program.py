"""The child process that runs a Pulumi program: connects Pulumi's runtime to the engine, then runs the program's file.

The host passes it a `ProgramLaunch`. Its exit status says whether the user has already seen the error.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import signal
import sys
import threading
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pulumi.runtime

ALREADY_REPORTED = 32  # exit status: the engine has shown the error


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLaunch:
    """Which program to run, and for which engine."""

    program: str
    folder: str
    root: str
    monitor: str
    engine: str
    organization: str
    project: str
    stack: str
    parallel: int
    dry_run: bool

    def to_json(self) -> str:
        """The launch as one command line argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ProgramLaunch:
        """The launch that `to_json` wrote."""
        return cls(**json.loads(text))


def main() -> int:
    """The exit status of the program."""
    _end_with_host()
    import pulumi
    import pulumi.runtime

    launch = ProgramLaunch.from_json(sys.argv[1])
    sys.argv = [launch.program, *sys.argv[2:]]
    os.chdir(launch.folder)
    pulumi.runtime.configure(_settings(launch))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _run_program(launch.program)))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return ALREADY_REPORTED
    except Exception as error:
        pulumi.log.error(program_error_text(error, launch.folder))
        return ALREADY_REPORTED
    return 0


def _settings(launch: ProgramLaunch) -> pulumi.runtime.Settings:
    from pulumi.runtime import Settings

    return Settings(
        monitor=launch.monitor,
        engine=launch.engine,
        organization=launch.organization,
        project=launch.project,
        stack=launch.stack,
        parallel=launch.parallel,
        dry_run=launch.dry_run,
        root_directory=launch.root,
    )


def _run_program(program: str) -> None:
    file = Path(program)
    sys.path.insert(0, str(file if file.is_dir() else file.parent))
    runpy.run_path(program, run_name="__main__")


def program_error_text(error: Exception, folder: str) -> str:
    """The error for the user: the provider's message of a failed invoke, otherwise the program's traceback."""
    text = str(error)
    if text.startswith("invoke of "):  # the SDK has no exception class of its own for it
        return text
    return f"the program failed:\n{own_traceback(error, folder)}"


def own_traceback(error: BaseException, folder: str) -> str:
    """The traceback from the program's first own frame, without the frames that started it."""
    trace = error.__traceback__
    while trace and not trace.tb_frame.f_code.co_filename.startswith(folder):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))


def _end_with_host() -> None:
    """Ends the program when the host exits, which closes our standard input."""
    threading.Thread(target=_await_end_of_input, daemon=True).start()


def _await_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so the engine ends its plugins; Python would print a traceback
    sys.exit(main())
