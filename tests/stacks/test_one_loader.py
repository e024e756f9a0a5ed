"""A rule for specs that is added to one way in alone fails here: `corral up`, or plain `pulumi up`.

Read from the source with ast, as tests/test_layers.py does.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORRAL = ROOT / "modules/corral"
PARSERS = {"parse_base", "parse_cluster", "try_parse_base", "try_parse_cluster"}
# What `corral up` alone sees to, by the function that refuses, with words of its row in docs/cli.md.
OF_CORRAL_UP_ALONE = {
    "refuse_removals_in_use": "placement group",
    "refuse_unproven_data": "does not prove",
    "require_disk_space": "space for machines",
    "require_startable": "`corral check`",
}
OF_BOTH = {"check_expiry"}  # calls stacks/admission.py, as the program does
NO_RULES = {"refuse_unasked"}


def called(file: Path) -> set[str]:
    """The names of all functions and methods that this module calls."""
    nodes = (node.func for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.Call))
    return {node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in nodes}


def callers(package: str, names: set[str]) -> set[str]:
    """The modules of this package ('' for all) that call one of these."""
    files = (CORRAL / package).rglob("*.py")
    own = (file for file in files if file.relative_to(CORRAL).parts[0] not in ("projects", "templates"))
    return {str(file.relative_to(CORRAL)) for file in own if names & called(file)}


def test_specs_of_stacks_are_parsed_by_one_loader() -> None:
    # What `corral new` writes is parsed before there are files.
    assert callers("", PARSERS) == {"spec/yaml/stack_files.py", "spec/loader.py", "spec/yaml/scaffold.py"}


@pytest.mark.parametrize("file", ["stacks/stack_inputs.py", "cli/commands/up.py", "cli/commands/upgrade.py"])
def test_who_brings_up_reads_an_environment_where_its_limits_are_checked(file: str) -> None:
    assert called(CORRAL / file) & {"admit", "read_environment", "read_base"} == {"admit"}


def test_programs_and_engine_read_no_cluster_otherwise() -> None:
    assert {package: callers(package, {"read_environment"}) for package in ("stacks", "engine")} == {
        "stacks": {"stacks/admission.py"},
        "engine": set(),
    }


def test_programs_and_engine_plan_a_cluster_alike() -> None:
    assert {package: callers(package, {"plan_cluster"}) for package in ("stacks", "engine")} == {
        "stacks": {"stacks/admission.py"},
        "engine": set(),
    }


def test_nothing_is_refused_one_way_that_is_not_on_the_page() -> None:
    """A new rule belongs into stacks/admission.py, where both ways in find it, or else into the table of the page."""
    calls = called(CORRAL / "cli/commands/up.py") | called(CORRAL / "engine/lifecycle/up.py")
    refusing = {name for name in calls if re.match("(refuse|require|check)_", name)}
    assert refusing - NO_RULES - OF_BOTH == set(OF_CORRAL_UP_ALONE)


@pytest.mark.parametrize("words", OF_CORRAL_UP_ALONE.values())
def test_the_page_names_what_is_refused_one_way(words: str) -> None:
    section = (ROOT / "docs/cli.md").read_text().partition("\n### corral up, or pulumi up\n")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| ") and words in line] != []
