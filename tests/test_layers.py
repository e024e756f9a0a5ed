"""The packages of corral: which may import which, which may use a library, and how modules may be named.

The tests read the source with ast, so imports inside functions and under TYPE_CHECKING count too. Only the last tests
run Python: they check what a command imports.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "modules" / "corral"

# Each package may import those above it.
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
# Two packages are apart: the agent on a cluster's machines, and the box, the local AWS emulator.
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
    "ruamel": ("spec",),
}
# A module with such a name collects what belongs nowhere.
FORBIDDEN_WORDS = {"util", "utils", "common", "misc", "helper", "helpers", "manager", "managers"}
SLOW_LIBRARIES = {"pulumi", "pulumi_aws", "boto3", "botocore", "moto", "jinja2", "grpc", "ruamel"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One source file: its dotted name, its top-level package ('' for corral itself), what it imports.

    `imports`: every dotted name; `from a import b` gives a.b, whether b is a module or not.
    """

    name: str
    package: str
    imports: tuple[str, ...]
    has_relative_import: bool
    has_docstring: bool


def source_files() -> list[Path]:
    """The package's own files; stack projects and templates are only linked into it."""
    linked = {"projects", "runbooks", "templates"}
    return sorted(path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in linked)


def parsed(path: Path) -> Module:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    name = ".".join(("corral", *parts)).removesuffix(".__init__")
    package = parts[0] if len(parts) > 1 else ""
    tree = ast.parse(path.read_bytes(), str(path))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return Module(
        name=name,
        package=package,
        imports=tuple(imported for node in nodes for imported in names_of(node)),
        has_relative_import=any(isinstance(node, ast.ImportFrom) and node.level for node in nodes),
        has_docstring=bool(ast.get_docstring(tree)),
    )


def names_of(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


@cache
def modules() -> Sequence[Module]:
    """Every module, parsed by the first test that asks: not while each worker collects."""
    return [parsed(path) for path in source_files()]


@cache
def known() -> set[str]:
    return {module.name for module in modules()}


def package_imports() -> set[tuple[str, str, str]]:
    """(package, imported package, importing module) for every import from one package into another."""
    pairs = ((module, name.split(".")) for module in modules() for name in module.imports)
    return {
        (module.package, parts[1], module.name)
        for module, parts in pairs
        if parts[0] == "corral" and len(parts) > 1 and (PACKAGE / parts[1]).is_dir() and parts[1] != module.package
    }


def allowed(package: str) -> set[str]:
    """The packages that this one may import."""
    if package == "agent":
        return set(AGENT_IMPORTS)
    if package == "box":
        return set(BOX_IMPORTS)
    apart = {"box": BOX_IMPORTERS, "agent": AGENT_IMPORTERS}
    return {*LAYERS[: LAYERS.index(package)], *(other for other, importers in apart.items() if package in importers)}


def test_every_package_is_listed_in_the_layers() -> None:
    packages = {module.package for module in modules()} - {""}
    assert packages - {*LAYERS, "agent", "box"} == set()


def test_no_package_imports_one_below_it() -> None:
    wrong = {
        f"{by} imports {what}" for package, what, by in package_imports() if package and what not in allowed(package)
    }
    assert wrong == set()


def test_no_modules_import_each_other_in_a_cycle() -> None:
    graph = {
        module.name: {name if name in known() else name.rpartition(".")[0] for name in module.imports} & known()
        for module in modules()
    }
    assert {*TopologicalSorter(graph).static_order()} == known()


def test_no_packages_side_by_side_import_each_other() -> None:
    """A package and those inside it may: the outer one composes them, and holds what they share."""
    pairs = {
        (folder_of(module.name), folder_of(name if name in known() else name.rpartition(".")[0]))
        for module in modules()
        for name in module.imports
        if name.startswith("corral.")
    }
    mutual = {(one, other) for one, other in pairs if (other, one) in pairs and one < other}
    assert {pair for pair in mutual if not pair[1].startswith(pair[0] + ".")} == set()


# The packages of the box call each other as AWS's services do: EC2 asks for quotas, quotas count EC2's instances.
RINGS_ALLOWED = {"corral.box"}


def test_packages_side_by_side_import_in_no_ring() -> None:
    graphs: dict[str, dict[str, set[str]]] = {}
    for module in modules():
        for name in module.imports:
            here, there = folder_of(module.name), folder_of(name if name in known() else name.rpartition(".")[0])
            parent = here.rpartition(".")[0]
            if here != there and parent == there.rpartition(".")[0] and parent not in RINGS_ALLOWED:
                graphs.setdefault(parent, {}).setdefault(here, set()).add(there)
    assert [parent for parent, graph in graphs.items() if not is_acyclic(graph)] == []


def is_acyclic(graph: Mapping[str, set[str]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    return True


def folder_of(name: str) -> str:
    """The package of a module; a package is its own."""
    return name if (PACKAGE.parent / name.replace(".", "/")).is_dir() else name.rpartition(".")[0]


def test_no_import_is_relative() -> None:
    assert [module.name for module in modules() if module.has_relative_import] == []


def test_corral_itself_imports_no_package() -> None:
    assert {by for package, _, by in package_imports() if not package} == set()


@pytest.mark.parametrize("library", LIBRARIES)
def test_library_is_imported_in_its_packages_only(library: str) -> None:
    importers = {module.name: module.package for module in modules() if library in top_names(module)}
    assert {name for name, package in importers.items() if package not in LIBRARIES[library]} == set()


def top_names(module: Module) -> set[str]:
    return {name.split(".")[0] for name in module.imports}


def test_no_module_has_a_name_for_odds_and_ends() -> None:
    words = {(module.name, word) for module in modules() for part in module.name.split(".") for word in part.split("_")}
    assert {name for name, word in words if word in FORBIDDEN_WORDS} == set()


def test_every_directory_with_modules_is_a_package() -> None:
    assert {path.parent for path in source_files() if not (path.parent / "__init__.py").exists()} == set()


def test_every_module_has_a_docstring() -> None:
    assert [module.name for module in modules() if not module.has_docstring] == []


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
