"""The rooms of corral: who may import whom, which libraries are used where, and how modules are called.

Read from the source with ast, so imports inside functions and under TYPE_CHECKING count as well. Only the last tests
run Python: they ask what a command loads.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "modules" / "corral"

# Each room may import those to its left.
LAYERS = (
    "model",
    "catalog",
    "spec",
    "plan",
    "forecast",
    "render",
    "inventory",
    "report",
    "preflight",
    "components",
    "stacks",
    "engine",
    "cli",
)
# Two rooms stand aside: what runs on a cluster's machines, and the AWS that it can be tried in.
AGENT_IMPORTS = ("model",)
BOX_IMPORTS = ("model", "catalog", "agent")
BOX_IMPORTERS = ("cli",)
AGENT_IMPORTERS = ("box",)

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "pulumi": ("components", "stacks", "engine", "box"),
    "pulumi_aws": ("components", "stacks", "engine", "box"),
    "boto3": ("inventory", "preflight", "box", "engine", "agent"),
    "botocore": ("inventory", "preflight", "box", "engine", "agent"),
    "moto": ("box",),
    "jinja2": ("render", "report"),
}
# A module of such a name takes in whatever has no other place.
FORBIDDEN_WORDS = {"util", "utils", "common", "misc", "helper", "helpers", "manager", "managers"}
SLOW_LIBRARIES = {"pulumi", "pulumi_aws", "boto3", "botocore", "moto", "jinja2", "grpc"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One source file: its dotted name, its room ('' for corral itself), its syntax tree."""

    name: str
    room: str
    tree: ast.Module


def source_files() -> list[Path]:
    """The package's own files; stack projects and templates are only linked into it."""
    linked = {"projects", "templates"}
    return sorted(path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in linked)


def parsed(path: Path) -> Module:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    name = ".".join(("corral", *parts)).removesuffix(".__init__")
    room = parts[0] if len(parts) > 1 else ""
    return Module(name=name, room=room, tree=ast.parse(path.read_bytes(), str(path)))


MODULES = [parsed(path) for path in source_files()]


def imported(module: Module) -> Iterator[str]:
    """Every dotted name that the module imports; for `from a import b` that is a.b, be b a module or not."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def room_imports() -> set[tuple[str, str, str]]:
    """(room, imported room, module that imports it) for every import from one room into another."""
    pairs = ((module, name.split(".")) for module in MODULES for name in imported(module))
    return {
        (module.room, parts[1], module.name)
        for module, parts in pairs
        if parts[0] == "corral" and len(parts) > 1 and (PACKAGE / parts[1]).is_dir() and parts[1] != module.room
    }


def allowed(room: str) -> set[str]:
    """The rooms that this one may import."""
    if room == "agent":
        return set(AGENT_IMPORTS)
    if room == "box":
        return set(BOX_IMPORTS)
    aside = {"box": BOX_IMPORTERS, "agent": AGENT_IMPORTERS}
    return {*LAYERS[: LAYERS.index(room)], *(other for other, importers in aside.items() if room in importers)}


def test_every_room_has_a_place_among_the_layers() -> None:
    rooms = {module.room for module in MODULES} - {""}
    assert rooms - {*LAYERS, "agent", "box"} == set()


def test_no_room_imports_one_to_its_right() -> None:
    wrong = {f"{by} imports {what}" for room, what, by in room_imports() if room and what not in allowed(room)}
    assert wrong == set()


def test_no_import_is_relative() -> None:
    nodes = ((module.name, node) for module in MODULES for node in ast.walk(module.tree))
    assert [name for name, node in nodes if isinstance(node, ast.ImportFrom) and node.level] == []


def test_the_package_itself_imports_no_room() -> None:
    assert {by for room, _, by in room_imports() if not room} == set()


@pytest.mark.parametrize("library", LIBRARIES)
def test_library_is_imported_in_its_rooms_only(library: str) -> None:
    importers = {module.name: module.room for module in MODULES if library in top_names(module)}
    assert {name for name, room in importers.items() if room not in LIBRARIES[library]} == set()


def top_names(module: Module) -> set[str]:
    return {name.split(".")[0] for name in imported(module)}


def test_no_module_has_a_name_for_odds_and_ends() -> None:
    words = {(module.name, word) for module in MODULES for part in module.name.split(".") for word in part.split("_")}
    assert {name for name, word in words if word in FORBIDDEN_WORDS} == set()


def test_every_package_says_what_lives_in_it() -> None:
    packages = [path for path in PACKAGE.rglob("__init__.py") if path in source_files()]
    assert [path for path in packages if not ast.get_docstring(ast.parse(path.read_bytes()))] == []


def test_every_directory_with_modules_is_a_package() -> None:
    assert {path.parent for path in source_files() if not (path.parent / "__init__.py").exists()} == set()


def test_every_module_says_what_lives_in_it() -> None:
    assert [module.name for module in MODULES if not ast.get_docstring(module.tree)] == []


@pytest.mark.parametrize(
    "command",
    [
        ("-c", "import corral.cli"),
        ("-m", "corral.cli", "--help"),
        ("-m", "corral.cli", "plan", "--help"),
    ],
    ids=lambda command: " ".join(command[1:]),
)
def test_slow_libraries_are_not_loaded(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines}
    assert loaded & SLOW_LIBRARIES == set()
