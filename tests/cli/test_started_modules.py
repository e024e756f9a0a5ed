"""Python searches the working directory first, which may be a clone of somebody else's; `-P` keeps it from that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MODULES = Path(__file__).parents[2] / "modules" / "corral"
# The engine starts it in the directory of a program, which it runs anyway.
OF_A_PROGRAM = {"engine/pulumi/language_host/service.py"}


def starts(source: str) -> Iterator[list[str]]:
    """The words of each list or tuple in this source by which a module of corral is started."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.List | ast.Tuple):
            words = [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if "-m" in words and any(word.startswith("corral.") or word == "corral" for word in words):
                yield words


def test_no_module_is_started_from_the_working_directory() -> None:
    found = {str(path.relative_to(MODULES)): list(starts(path.read_text())) for path in MODULES.rglob("*.py")}
    others = {name for name, commands in found.items() if any("-P" not in words for words in commands)}
    assert others == OF_A_PROGRAM


def test_the_starts_of_ssh_are_among_them() -> None:
    found = list(starts((MODULES / "cli/commands/ssh_config.py").read_text()))
    assert sorted(found) == [["-P", "-m", "corral.box.dial"], ["-P", "-m", "corral.cli"]]
