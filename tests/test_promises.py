"""docs/promises.md names the tests of each claim of README.md and each section of docs/fidelity.md, in their tiers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from tools.mutations.promise_map import named_tests, promise_rows

from readme_claims import plain, readme_claims

TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent
FIDELITY, MACHINES, SECURITY = (REPOSITORY / f"docs/{name}.md" for name in ("fidelity", "virtual-machines", "security"))
CLAIMS = readme_claims((REPOSITORY / "README.md").read_text())
# Section and first words: why no test can show it.
NO_CLAIM: Mapping[tuple[str, str], str] = {
    ("Two commands", "The first run takes a few minutes longer"): "no test measures time, nor the minutes in this"
    " section, which docs/benchmarks.md reports",
    ("Your first spot dev cluster, on AWS", "corral has not run on a real account yet"): "it needs an account",
}
TIERS = ("make test", "make test-all")


def rows() -> Iterator[tuple[str, list[str]]]:
    """The document and the cells of each row of the tables that name tests."""
    return promise_rows((REPOSITORY / "docs/promises.md").read_text())


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


@cache
def files_named(name: str) -> tuple[Path, ...]:
    return tuple(TESTS.rglob(name))


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


def names_in(page: Path) -> list[str]:
    """The tests that a page names, each with its file; "..." is the rest of a name."""
    found, file = [], ""
    for folder, name in re.findall(r"`(?:([a-z0-9_]+): )?([a-z0-9_]+(?:_\.\.\.)?)`", page.read_text()):
        file = folder or file
        if folder or name.endswith("_..."):
            found.append(f"{file}: {name}")
    return sorted(set(found))


@pytest.mark.parametrize("name", [*names_in(FIDELITY), *names_in(MACHINES), *names_in(SECURITY)])
def test_test_that_a_page_names_exists(name: str) -> None:
    file, _, start = name.partition(": ")
    tests = [test for path in files_named(f"test_{file}.py") for test in marked(str(path.relative_to(TESTS))[:-3])]
    known = [re.sub(r"\W+", "_", test) for test in tests]
    whole = start.removesuffix("...")
    assert [test for test in known if test == whole or (start.endswith("...") and test.startswith(whole))]


def test_each_row_of_what_remains_has_a_test_or_the_reason_why_not() -> None:
    _, _, remains = SECURITY.read_text().partition("\n## What remains\n")
    shown = re.findall(r"^\| .+ \| .+ \| (.+) \|$", remains, re.MULTILINE)[1:]
    assert len(shown) == 32
    assert [cell for cell in shown if not re.search(r"`\w+: \w+`|^not proved, because ", cell)] == []


def test_every_section_of_docs_fidelity_has_a_test_in_make_test() -> None:
    sections = set(re.findall(r"^## (.*)$", FIDELITY.read_text(), re.MULTILINE))
    assert {cells[0] for page, cells in rows() if page == "docs/fidelity.md" and named_tests(cells[-2])} == sections


def quoted() -> list[tuple[str, str]]:
    """The section and the first words of each row about README.md."""
    return [(cells[0], plain(cells[1])) for page, cells in rows() if page == "README"]


def test_each_claim_of_the_readme_begins_one_row() -> None:
    quotes = [*quoted(), *NO_CLAIM]
    found = {claim: [quote for quote in quotes if begins(claim, quote)] for claim in CLAIMS}
    assert {claim: begun for claim, begun in found.items() if len(begun) != 1} == {}


def begins(claim: tuple[str, str], quote: tuple[str, str]) -> bool:
    return claim[0] == quote[0] and claim[1].startswith(quote[1])


def test_each_row_quotes_the_readme() -> None:
    texts = {section: "\n".join(text for name, text in CLAIMS if name == section) for section, _ in CLAIMS}
    quotes = [*quoted(), *NO_CLAIM]
    assert [(section, quote) for section, quote in quotes if quote not in texts.get(section, "")] == []


def test_each_claim_of_the_readme_has_a_test_in_make_test() -> None:
    assert [cells[1] for page, cells in rows() if page == "README" and not named_tests(cells[-2])] == []
