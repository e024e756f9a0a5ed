"""The command line. One module a command group, imported only when its command runs; no logic lives here.

What a command says on success is built in `report`, what it finds out in the rooms below; `failure` turns everything
that can go wrong into a sentence and an exit code.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command that sys.argv names and ends the process with its exit code."""
    from corral.cli.failure import exit_code_of

    sys.exit(exit_code_of(_run))


def _run() -> int:
    arguments = sys.argv[1:]
    if arguments in (["--help"], ["-h"]):  # the page that people open most: no reason to load anything for it
        return _front_page()
    from corral.cli.app import run

    return run(arguments)


def _front_page() -> int:
    from corral.cli.front_page import page
    from corral.cli.terminal import wants_colour

    sys.stdout.write(page(bold=wants_colour()) + "\n")
    return 0
