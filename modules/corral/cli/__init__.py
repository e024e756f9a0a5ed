"""The command line: one module per command, imported only when it runs.

`support.plan_service` calls the packages that a plan needs, in order; decisions are in those packages. `report` builds
the output; `support.exit_codes` turns every error into a message and an exit code.
"""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command that sys.argv names and ends the process with its exit code."""
    from corral.cli.support.exit_codes import exit_code_of

    sys.exit(exit_code_of(_run))


def _run() -> int:
    arguments = sys.argv[1:]
    if arguments in (["--help"], ["-h"]):  # the most used page: load nothing for it
        return _front_page()
    from corral.cli.app import run

    return run(arguments)


def _front_page() -> int:
    from corral.cli.help_page import front_page
    from corral.cli.support.terminal import wants_colour

    sys.stdout.write(front_page(bold=wants_colour()) + "\n")
    return 0
