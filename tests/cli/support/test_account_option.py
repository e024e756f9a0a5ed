"""The account options of suggested commands: they select the account of the command that suggests them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.cli.support.deployment import CommonOptions
from corral.cli.support.target_account import account_option


@pytest.mark.parametrize(
    ("in_box", "directory", "option"),
    [
        (False, None, ""),
        (True, None, " --box"),
        (True, Path("/tmp/b 1"), " --box-dir '/tmp/b 1'"),
        (False, Path("b1"), " --box-dir b1"),
    ],
)
def test_suggested_command_has_the_account_options_of_its_command(
    in_box: bool, directory: Path | None, option: str
) -> None:
    assert account_option(in_box=in_box, box_directory=directory) == option


def test_command_suggested_by_the_engine_has_the_account_options() -> None:
    bench = CommonOptions(project=None, in_box=True, box_directory=None, json=False, wait=False)
    assert bench.account_option == " --box"
