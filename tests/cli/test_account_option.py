"""What command lines that are told to somebody end with: they must mean the account of the command that tells them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.cli.account import account_option
from corral.cli.engine_room import Bench


@pytest.mark.parametrize(
    ("in_box", "directory", "option"),
    [
        (False, None, ""),
        (True, None, " --box"),
        (True, Path("/tmp/b 1"), " --box-dir '/tmp/b 1'"),
        (False, Path("b1"), " --box-dir b1"),
    ],
)
def test_a_command_line_ends_as_the_command_that_tells_it(in_box: bool, directory: Path | None, option: str) -> None:
    assert account_option(in_box=in_box, box_directory=directory) == option


def test_what_the_engine_tells_ends_so_too() -> None:
    bench = Bench(project=None, in_box=True, box_directory=None, json=False, wait=False)
    assert bench.account_option == " --box"
