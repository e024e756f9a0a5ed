"""docs/development.md names a test for each promise of README.md and docs/fidelity.md, which exists in that tier."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tools.mutations.promise_map import named_tests, promise_rows

TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent
FIDELITY = REPOSITORY / "docs/fidelity.md"
# Sections without promises.
NO_PROMISE = {"Terms", "Documentation"}
TIERS = ("make test", "make test-all")


def rows() -> Iterator[tuple[str, list[str]]]:
    """The document and the cells of each row of the tables that name tests."""
    return promise_rows((REPOSITORY / "docs/development.md").read_text())


def named() -> list[tuple[str, str]]:
    """Each tier with each test, or file of tests, that the tables list for it."""
    return sorted(
        {
            (tier, name)
            for _, cells in rows()
            for tier, cell in zip(TIERS, cells[-2:], strict=True)
            for name in named_tests(cell)
        }
    )


@cache
def marked(path: str) -> dict[str, bool]:
    """The tests of a file and the steps of its scenarios, and whether each is `long`: by its mark or by hypothesis."""
    folder, _, name = path.rpartition("/")
    tree = ast.parse((TESTS / folder / f"test_{name.removeprefix('test_')}.py").read_text())
    whole = any(isinstance(one, ast.Assign) and "mark.long" in ast.unparse(one) for one in tree.body if is_mark(one))
    found = {}
    for one in tree.body:
        if isinstance(one, ast.FunctionDef):
            long = whole or any(is_long(ast.unparse(mark)) for mark in one.decorator_list)
            found |= dict.fromkeys(steps(one), long)
            if one.name.startswith("test_"):
                found[one.name.removeprefix("test_")] = long
    return found


def steps(function: ast.FunctionDef) -> list[str]:
    """The claims of the steps in a function of a scenario."""
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call) and ast.unparse(node.func) == "step")
    return [one.args[0].value for one in calls if isinstance(one.args[0], ast.Constant)]


def is_mark(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"


def is_long(decorator: str) -> bool:
    return decorator == "pytest.mark.long" or decorator.startswith("given(")


@pytest.mark.parametrize(("tier", "name"), named(), ids=lambda one: one.replace(" ", "_"))
def test_listed_test_exists_in_its_tier(tier: str, name: str) -> None:
    path, _, test = name.partition(": ")
    found = marked(path)
    long = [found[test]] if test else list(found.values())
    assert (TIERS[1] if all(long) else TIERS[0]) == tier


def fidelity_names() -> list[str]:
    """The tests that docs/fidelity.md names, each with its file; "..." is the rest of a name."""
    found, file = [], ""
    for folder, name in re.findall(r"`(?:([a-z_]+): )?([a-z0-9_]+(?:_\.\.\.)?)`", FIDELITY.read_text()):
        file = folder or file
        if folder or name.endswith("_..."):
            found.append(f"{file}: {name}")
    return sorted(set(found))


@pytest.mark.parametrize("name", fidelity_names())
def test_test_that_docs_fidelity_names_exists(name: str) -> None:
    file, _, start = name.partition(": ")
    tests = [test for path in TESTS.rglob(f"test_{file}.py") for test in marked(str(path.relative_to(TESTS))[:-3])]
    known = [re.sub(r"\W+", "_", test) for test in tests]
    whole = start.removesuffix("...")
    assert [test for test in known if test == whole or (start.endswith("...") and test.startswith(whole))]


@pytest.mark.parametrize(("page", "file"), [("README", "README.md"), ("docs/fidelity.md", "docs/fidelity.md")])
def test_every_section_with_promises_has_a_test_in_make_test(page: str, file: str) -> None:
    sections = set(re.findall(r"^## (.*)$", (REPOSITORY / file).read_text(), re.MULTILINE)) - NO_PROMISE
    tested = {cells[0] for found, cells in rows() if found == page and named_tests(cells[-2])}
    assert tested - {"Top"} == sections
