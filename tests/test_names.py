"""The vocabulary of code and help: names must not use words that were replaced by the field's terms.

The tests compare whole words of names, so `asked_at` is found and `task` is not. ALLOWED lists exceptions with reasons.
"""

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("modules/corral", "stacks", "tools", "benchmarks", "examples")

# Folders whose functions, fixtures and classes have names in the field's words.
TESTS = (
    ".",
    "agent",
    "box",
    "browser",
    "catalog",
    "cli",
    "components",
    "docs",
    "engine",
    "examples",
    "forecast",
    "inventory",
    "life",
    "model",
    "plan",
    "preflight",
    "render",
    "report",
    "sim",
    "slurmctld",
    "spec",
    "stacks",
    "wheel",
)

# Word: what to write instead.
REPLACED: Mapping[str, str] = {
    **dict.fromkeys(("wish", "wishes", "wished"), "request, desired, declared"),
    **dict.fromkeys(("told", "tell", "tells", "telling"), "report, print, log"),
    **dict.fromkeys(("ask", "asks", "asked", "asking"), "query, fetch, request"),
    **dict.fromkeys(("deed", "deeds"), "operation, action"),
    "belongings": "external resources",
    **dict.fromkeys(("complaint", "complaints"), "error report"),
    **dict.fromkeys(("life", "lives", "lived"), "history (of a cluster), run (of a job)"),
    **dict.fromkeys(("mend", "mends", "mended", "mending"), "execute, repair, fix"),
    "befall": "apply a fault",
    **dict.fromkeys(("stranger", "strangers"), "unknown nodes"),
    "ground": "host support, existing VPC, fixtures",
    **dict.fromkeys(("habit", "habits"), "policy"),
    **dict.fromkeys(("chore", "chores"), "background task"),
    "pulse": "liveness",
    "signs": "liveness",
    "trial": "validation",
    **dict.fromkeys(("turn", "turns"), "reconciliation, loop"),
    **dict.fromkeys(("place", "places"), "placement, path"),
    **dict.fromkeys(("keeper", "keepers"), "autoscaler"),
    **dict.fromkeys(("note", "notes"), "request (of resume and suspend), warning"),
    **dict.fromkeys(("rests", "rested"), "backoff"),
    "world": "cluster state",
    **dict.fromkeys(("room", "rooms"), "package, space, capacity"),
    "doubles": "duplicates",
    "bell": "wake socket",
    "beside": "allocated, next to",
    "surroundings": "context",
    **dict.fromkeys(("said", "says", "saying"), "print, report"),
    "sweep": "cleanup",
    "catalogue": "catalog",
    **dict.fromkeys(("judge", "judges", "judged", "judging"), "evaluate, classify, refuse"),
    **dict.fromkeys(("leftover", "leftovers"), "orphans"),
    **dict.fromkeys(("tenant", "tenants"), "subnet users"),
    **dict.fromkeys(("teller", "tellers"), "finding builder, text"),
}

# "file: name", or a name everywhere: why it stays.
ALLOWED: Mapping[str, str] = {
    "place_nics": "the verb: which card an interface is placed on",
    "_place_nic": "the same",
    "_place_existing": "the same",
    "templates/jobs/sweep.sbatch.j2: sweep.sbatch": "a hyperparameter sweep",
    # A whole cluster from up to down, as in `make bench-life`.
    "benchmarks.md: `make bench-life`: a cluster in the box": "the target's name",
    "Makefile: bench-life": "the same",
    "Makefile: vm-life": "the same, on virtual machines",
    "docs/vm-life.md: vm-life": "its result",
    "docs/vm-life.svg: vm-life": "the same",
    "life_cycle_state": "the field of EFS",
    "tests/life/clusters.py: life": "a cluster from up to down",
    "tests/life/test_dev_life.py: life": "the same",
    "tests/life/test_dev_by_pulumi.py: life": "the same",
    "tests/life/test_machine_life.py: life": "the same",
    "tests/life/test_mixed_life.py: life": "the same",
    "tests/life/test_train_life.py: life": "the same",
    "tests/life/life.py: life": "a cluster from up to down",
    "tests/life/life.py: Life": "the same",
    "tests/life/test_dev_life.py: test_dev_life": "a cluster from up to down",
    "tests/life/test_end_of_life.py: test_end_of_life": "end of life is the field's term",
    "tests/life/test_machine_life.py: test_machine_life": "a cluster from up to down",
    "tests/life/test_mixed_life.py: test_mixed_life": "a cluster from up to down",
    "tests/life/test_releases_life.py: test_releases_life": "a cluster from up to down",
    "tests/life/test_train_life.py: test_train_life": "a cluster from up to down",
}


def words(name: str) -> set[str]:
    """The words of a name in snake_case, CamelCase or kebab-case, in lower case."""
    parts = re.split(r"[^A-Za-z0-9]+", name)
    return {word.lower() for part in parts for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", part)}


def sources() -> list[Path]:
    return sorted(
        path
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
        if not {"projects", "templates", "__pycache__", ".venv"} & set(path.relative_to(ROOT / source).parts[:1])
    )


@cache
def names_of(path: Path) -> tuple[str, ...]:
    """The names that a module gives: its own, those of its definitions and variables, and the keys of its documents."""
    return (path.stem, *_names_in(path))


def _names_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.Dict(keys=keys):
                texts = (key.value for key in keys if isinstance(key, ast.Constant))
                yield from (text for text in texts if isinstance(text, str) and re.fullmatch("[a-z_]+", text))


def steps_of(path: Path) -> Iterator[str]:
    """The claims of the steps of a module's scenarios."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Call(func=ast.Name(id="step"), args=[ast.Constant(value=claim), *_]):
                yield str(claim)


@cache
def replaced(name: str) -> set[str]:
    return set() if name in ALLOWED else words(name) & REPLACED.keys()


def shown(where: str, name: str) -> list[str]:
    if f"{where}: {name}" in ALLOWED:
        return []
    return [f"{where}: {name} - not '{word}' but {REPLACED[word]}" for word in sorted(replaced(name))]


@pytest.mark.parametrize("source", SOURCES)
def test_names_in_code_are_the_fields(source: str) -> None:
    files = [path for path in sources() if path.is_relative_to(ROOT / source)]
    found = [line for path in files for name in names_of(path) for line in shown(str(path.relative_to(ROOT)), name)]
    assert found == []


def test_names_of_test_files_are_the_fields() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "docs").glob("*"), *(ROOT / "templates").rglob("*.j2")]
    assert [line for path in files for line in shown(str(path.relative_to(ROOT)), path.stem)] == []


@pytest.mark.parametrize("folder", TESTS)
def test_names_in_tests_are_the_fields(folder: str) -> None:
    found = (ROOT / "tests" / folder).glob("*.py" if folder == "." else "**/*.py")
    files = sorted(path for path in found if path != Path(__file__))  # which lists the words
    named = [(str(path.relative_to(ROOT)), name) for path in files for name in (*names_of(path), *steps_of(path))]
    assert named != []
    assert [line for where, name in named for line in shown(where, name)] == []


def test_headings_of_the_documentation_are_in_the_fields_words() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    headings = {page: re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE) for page in pages}
    assert [line for page, found in headings.items() for text in found for line in shown(page.name, text)] == []


def test_keys_of_data_files_are_in_the_fields_words() -> None:
    files = [ROOT / "pyproject.toml", *sorted((ROOT / "modules/corral/catalog/data").glob("*.toml"))]
    keys = {path: set(re.findall(r'^\s*"?([A-Za-z_-]+)"?\s*=', path.read_text(), re.MULTILINE)) for path in files}
    assert [line for path, names in keys.items() for name in sorted(names) for line in shown(path.name, name)] == []


def test_targets_of_make_are_in_the_fields_words() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [line for name in targets for line in shown("Makefile", name)] == []


@cache
def help_texts() -> Mapping[str, str]:
    """The help of every command, by its words."""
    from tools.docs.help_page import help_of_all_commands

    return help_of_all_commands()


def test_help_is_in_the_fields_words() -> None:
    assert [line for command, text in help_texts().items() for line in shown(command, text)] == []


def test_every_allowed_name_exists() -> None:
    known = {name for path in sources() for name in names_of(path)}
    known |= {f"{path.relative_to(ROOT)}: {name}" for path in sources() for name in names_of(path)}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    known |= {f"{name}: {Path(name).stem}" for name in listed}
    modules = [name for name in listed if name.startswith("tests/") and name.endswith(".py")]
    known |= {f"{module}: {name}" for module in modules for name in names_of(ROOT / module)}
    assert {name for name in ALLOWED if ": " not in name or name.split(": ")[0].endswith(".py")} - known == set()
