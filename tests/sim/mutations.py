"""The keeper's decisions, broken on purpose: the simulator must notice. `python -m sim.mutations [COUNT] [SEED]`.

A mutation flips a comparison, drops one action, a condition or a statement, or exchanges `and` and `or`. Each is lived
in a process of its own, until a life shows that something is broken.
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

MODULES = ("corral.agent.decide", "corral.agent.launches", "corral.agent.memory")
LIVES = 300
PATIENCE_S = 1800  # many times what the lives of a keeper take that does not ask and ask
# What is done to files, to words and to bounds that only a human sees, no life can show.
BEYOND = frozenset({"load", "save", "why_cold", "_concerns", "tidied"})
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
    """All there are, in the order of the source."""
    return [one for module in MODULES for one in _of(module)]


def _of(module: str) -> Iterator[Mutation]:
    spec = find_spec(module)
    assert spec
    assert spec.origin
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name not in BEYOND):
        for place in range(sum(1 for _ in ast.walk(function))):
            for text, changed in _changes(tree, function, place):
                source = ast.unparse(ast.fix_missing_locations(changed))
                yield Mutation(module=module, line=_line(function, place), text=text, source=source)


def _changes(tree: ast.Module, function: ast.FunctionDef, place: int) -> Iterator[tuple[str, ast.Module]]:
    """The changes at one node of a function."""
    at = tree.body.index(function)

    def copied() -> tuple[ast.Module, ast.AST]:
        whole = deepcopy(tree)
        return whole, list(ast.walk(whole.body[at]))[place]

    node = list(ast.walk(function))[place]
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


def _line(function: ast.FunctionDef, place: int) -> int:
    return getattr(list(ast.walk(function))[place], "lineno", function.lineno)


def caught(number: int, lives: int = LIVES) -> int | None:
    """The first seed whose life shows that this mutation is one; None where none does."""
    one = mutations()[number]
    module = ModuleType(one.module)
    sys.modules[one.module] = module
    spec = find_spec("corral.agent.errors")
    assert spec
    exec(compile(one.source, one.module, "exec"), module.__dict__)
    parent, _, name = one.module.rpartition(".")
    setattr(sys.modules[parent], name, module)
    from sim.claims import broken

    for seed in range(1, lives + 1):
        try:
            if broken(seed):
                return seed
        except Exception:  # a decision that ends with an error is noticed as well
            return seed
    return None


def chosen(count: int, seed: int) -> list[int]:
    """So many mutations by their numbers."""
    return sorted(random.Random(seed).sample(range(len(mutations())), count))


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        logging.disable()
        found = caught(int(sys.argv[2]))
        sys.stdout.write("" if found is None else str(found))
        return 0
    count, seed = (int(sys.argv[place]) if len(sys.argv) > place else usual for place, usual in ((1, 20), (2, 1)))
    from sim.claims import lives  # not above: `caught` puts a module in place before anything imports it

    began = time.monotonic()
    # Else each mutation would be caught by what is wrong without it.
    if wrong := [life for life, found in lives(LIVES) if found]:
        sys.stdout.write(f"without any mutation the life of seed {wrong[0]} fails: mend that first\n")
        return 1
    listed, numbers = mutations(), chosen(count, seed)

    def ask(number: int) -> str:
        command = [sys.executable, "-m", "sim.mutations", "--one", str(number)]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
        except subprocess.TimeoutExpired:
            return "without end"

    missed = 0
    with ThreadPoolExecutor(2) as pool:
        for number, found in zip(numbers, pool.map(ask, numbers), strict=True):
            one = listed[number]
            missed += not found
            words = f"seed {found}" if found.isdecimal() else found or f"NOT in {LIVES} lives"
            sys.stdout.write(f"{words:>12}  {one.module.rpartition('.')[2]}:{one.line}  {one.text}\n")
            sys.stdout.flush()
    caught_ = count - missed
    sys.stdout.write(f"{caught_} of {count} mutations caught, {time.monotonic() - began:.0f} s\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
