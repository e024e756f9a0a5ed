"""The shipped environments, mutated by a seed: `corral plan` exits with 0 or 2, never with a traceback."""

from __future__ import annotations

import contextlib
import copy
import io
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from corral.cli.app import run
from corral.cli.support.exit_codes import EXIT_CODES
from environments import PROJECT

pytestmark = pytest.mark.long
SEED, MUTANTS = 20261121, 150  # of each environment
ENVIRONMENTS = ("dev", "train", "mixed")
WORDS = (
    None, True, False, 0, -1, 1, 3, 10**18, 2.5, float("nan"), "", " ", "on", "off", "10m", "1h30m", "forever", "/",
    "/nvme", "use1-az1", "usw2-az2", "us-east-1a", "us-east-1", "10.64.0.0/16", "10.0.0.0/33", "10.20.32.10", "s3://",
    "s3://b/c", "spot", "on-demand", "reservation", "capacity-block", "cr-0123456789abcdef0", "p5.48xlarge", "dev",
    "t3.medium", "trn1.2xlarge", "SCRATCH_2", "PERSISTENT_2", "HDD", "train", "Ünï", "a" * 300, [], {}, [1], ["x", "x"],
    {"a": 1}, {"min": 5, "max": 2},
)  # fmt: skip

# Written without quotes: YAML readers disagree about their types.
PLAIN_WORDS = (
    "on", "off", "yes", "no", "y", "N", "True", "~", "null", "", "12:30", "10:00:00", "0777", "0x1F", "1_000", "1e3",
    ".5", "1.", "+5", "=", "<<", "2026-11-21", ".inf", ".nan", "12345678901234567890", "!!str x", "*gone", "&a x",
    "- x", "{", "]", "a: b", "'", "@x", "%x", "# x", "|", ">-", "? x",
)  # fmt: skip
MARK = "plain-word-"


def exit_code(arguments: list[str]) -> int:
    """The exit code of the command, run in this process: its own, or that of its error."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return run(arguments)
    except Exception as error:
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        if kind not in EXIT_CODES or not str(error).strip():
            raise  # this would be a traceback
        return int(getattr(error, "code", EXIT_CODES[kind]))


def mutated(document: Any, dice: random.Random) -> Any:
    """The document after one to four random edits."""
    copied = copy.deepcopy(document)
    for _ in range(dice.randint(1, 4)):
        paths = list(_paths(copied["config"]))
        holder, key = dice.choice(paths) if paths else (copied, "config")
        match dice.choice(("set", "set", "plain", "remove", "copy", "rename", "swap")):
            case "remove":
                del holder[key]
            case "copy" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case "rename" if isinstance(holder, dict):
                holder[str(dice.choice(WORDS))[:20]] = holder.pop(key)
            case "swap" if paths:
                other, other_key = dice.choice(paths)
                holder[key] = copy.deepcopy(other[other_key]) if _has(other, other_key) else None
            case "plain":
                holder[key] = f"{MARK}{dice.randrange(len(PLAIN_WORDS)):02}"
            case _:
                holder[key] = copy.deepcopy(dice.choice(WORDS))
        if not isinstance(copied.get("config"), dict):
            break
    return copied


def as_yaml(document: Any) -> str:
    """The document as YAML, by the C writer, since there are thousands. Marks become unquoted words."""
    text = str(yaml.dump(document, Dumper=yaml.CSafeDumper, allow_unicode=True))
    return re.sub(rf"{MARK}(\d\d)", lambda found: PLAIN_WORDS[int(found[1])], text)


def _paths(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _paths(value[key])


def _has(holder: Any, key: Any) -> bool:
    return key in holder if isinstance(holder, dict) else key < len(holder)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_mutant_is_planned_or_refused_with_sentences(name: str, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "stacks", tmp_path / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    dice, codes, wrong = random.Random(f"{SEED} {name}"), set(), []
    files = {kind: tmp_path / "stacks" / kind / f"Pulumi.{name}.yaml" for kind in ("base", "cluster")}
    good = {kind: yaml.safe_load(file.read_text()) for kind, file in files.items()}
    for number in range(MUTANTS):
        kind = "cluster" if dice.random() < 0.7 else "base"
        files[kind].write_text(as_yaml(mutated(good[kind], dice)))
        try:
            codes.add(exit_code(["plan", name, "--project", str(tmp_path)]))
        except Exception as error:
            wrong.append((number, repr(error), files[kind].read_text()))
        files[kind].write_text(as_yaml(good[kind]))
    assert (wrong[:1], codes) == ([], {0, 2})
