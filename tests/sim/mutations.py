"""The autoscaler's decisions, broken on purpose: the simulator must notice. `python -m sim.mutations [COUNT] [SEED]`.

A mutation flips a comparison, drops one action, a condition or a statement, or exchanges `and` and `or`. Each runs
in its own process, until a simulation finds a violation.
"""

from __future__ import annotations

import ast
import logging
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

MODULES = ("corral.agent.autoscaler.decide", "corral.agent.autoscaler.launch_planner", "corral.agent.cluster.state")
SIMULATIONS = 300
TIMEOUT_S = 1800  # many times what the simulations take without an endless loop
# Functions on files, texts and limits, which no simulation can check.
NOT_SIMULATED = frozenset({"load_state", "save_state", "why_unavailable", "_has_targets", "prune"})
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A module's source with one thing changed."""

    module: str
    line: int
    text: str
    source: str


def mutations() -> list[Mutation]:
    """All mutations, in the order of the source."""
    return [one for module in MODULES for one in _of(module)]


def _of(module: str) -> Iterator[Mutation]:
    spec = find_spec(module)
    assert spec
    assert spec.origin
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for function in (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name not in NOT_SIMULATED
    ):
        for position in range(sum(1 for _ in ast.walk(function))):
            for text, changed in _changes(tree, function, position):
                source = ast.unparse(ast.fix_missing_locations(changed))
                yield Mutation(module=module, line=_line(function, position), text=text, source=source)


def _changes(tree: ast.Module, function: ast.FunctionDef, position: int) -> Iterator[tuple[str, ast.Module]]:
    """The changes at one node of a function."""
    at = tree.body.index(function)

    def copied() -> tuple[ast.Module, ast.AST]:
        whole = deepcopy(tree)
        return whole, list(ast.walk(whole.body[at]))[position]

    node = list(ast.walk(function))[position]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _FLIPPED:
        whole, found = copied()
        assert isinstance(found, ast.Compare)
        found.ops[0] = _FLIPPED[type(found.ops[0])]()
        yield f"{ast.unparse(node)} -> {ast.unparse(found)}", whole
    elif isinstance(node, ast.BoolOp):
        whole, found = copied()
        assert isinstance(found, ast.BoolOp)
        found.op = ast.And() if isinstance(found.op, ast.Or) else ast.Or()
        yield f"{ast.unparse(node)} -> {ast.unparse(found)}", whole
    elif (
        isinstance(node, ast.Tuple) and node.elts and all(isinstance(one, ast.Call | ast.Starred) for one in node.elts)
    ):
        for number, element in enumerate(node.elts):
            whole, found = copied()
            assert isinstance(found, ast.Tuple)
            del found.elts[number]
            yield f"without {ast.unparse(element)}", whole


def _line(function: ast.FunctionDef, position: int) -> int:
    return getattr(list(ast.walk(function))[position], "lineno", function.lineno)


def caught(number: int, simulations: int = SIMULATIONS) -> int | None:
    """The first seed whose simulation detects this mutation; None if none does."""
    one = mutations()[number]
    module = ModuleType(one.module)
    sys.modules[one.module] = module
    spec = find_spec("corral.agent.errors")
    assert spec
    exec(compile(one.source, one.module, "exec"), module.__dict__)
    parent, _, name = one.module.rpartition(".")
    setattr(sys.modules[parent], name, module)
    from sim.invariants import violations

    for seed in range(1, simulations + 1):
        try:
            if violations(seed):
                return seed
        except Exception:  # a decision that raises is detected too
            return seed
    return None


def chosen(count: int, seed: int) -> list[int]:
    """The numbers of this many random mutations."""
    return sorted(random.Random(seed).sample(range(len(mutations())), count))


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        logging.disable()
        found = caught(int(sys.argv[2]))
        sys.stdout.write("" if found is None else str(found))
        return 0
    count, seed = (
        int(sys.argv[position]) if len(sys.argv) > position else usual for position, usual in ((1, 20), (2, 1))
    )
    from sim.invariants import simulate  # not above: `caught` replaces a module before anything imports it

    began = time.monotonic()
    # Otherwise every mutation would seem detected.
    if wrong := [simulation for simulation, found in simulate(SIMULATIONS) if found]:
        sys.stdout.write(f"without a mutation the simulation of seed {wrong[0]} fails: fix that first\n")
        return 1
    listed, numbers = mutations(), chosen(count, seed)

    def run(number: int) -> str:
        command = [sys.executable, "-m", "sim.mutations", "--one", str(number)]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout
        except subprocess.TimeoutExpired:
            return "without end"

    missed = 0
    with ThreadPoolExecutor(2) as pool:
        for number, found in zip(numbers, pool.map(run, numbers), strict=True):
            one = listed[number]
            missed += not found
            words = f"seed {found}" if found.isdecimal() else found or f"NOT in {SIMULATIONS} simulations"
            sys.stdout.write(f"{words:>12}  {one.module.rpartition('.')[2]}:{one.line}  {one.text}\n")
            sys.stdout.flush()
    caught_ = count - missed
    sys.stdout.write(f"{caught_} of {count} mutations caught, {time.monotonic() - began:.0f} s\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
