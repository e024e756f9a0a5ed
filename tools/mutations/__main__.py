"""`make mutations`: apply each patch of this folder to a copy of the checkout; a test of its row must fail.

Prints the test that caught each patch, and the seconds. Exits with 1 if a patch is not caught, or if a test that caught
one fails without any patch. `ARGS='03 security/1'` applies only patches whose names begin so.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.mutations.patches import FOLDER, MAP, ROOT, Patch, patches, promises, sown_defects

LIMIT_S = 1200  # the longest scenario takes five minutes on two cores


def main(arguments: Sequence[str]) -> int:
    """Return 0 if each chosen patch makes a test of its row fail, and no test fails without it."""
    known = (*patches(), *sown_defects())
    chosen = [patch for patch in known if not arguments or patch.name.startswith(tuple(arguments))]
    if not chosen:
        print(f"no patch in {FOLDER} has a name like {' or '.join(arguments) or '*'}", file=sys.stderr)
        return 2
    of_promises = promises(MAP.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="corral-mutations-") as directory:
        copy = copied_checkout(Path(directory))
        found = {patch: catch(patch, patch.tests(of_promises), copy) for patch in chosen}
        whole = sorted({re.split(r"\[|, step: ", test)[0] for test in found.values() if test})
        failed = first_failure(whole, copy) if whole else ""
    if failed:
        print(f"{failed} fails without any patch, so it proves nothing")
    print(f"{sum(map(bool, found.values()))} of {len(chosen)} patches caught")
    return 0 if all(found.values()) and not failed else 1


def copied_checkout(directory: Path) -> Path:
    """A clone of the last commit with the uncommitted changes, and an environment of its own."""
    copy = directory / "checkout"
    subprocess.run(["git", "clone", "--quiet", ROOT, copy], check=True)
    changed = subprocess.run(["git", "diff", "HEAD", "--binary"], cwd=ROOT, capture_output=True, check=True).stdout
    if changed:
        subprocess.run(["git", "apply"], cwd=copy, input=changed, check=True)
    subprocess.run(
        [sys.executable, "-E", "-s", "tools/prepare", "venv"], cwd=copy, stdout=subprocess.DEVNULL, check=True
    )
    return copy


def catch(patch: Patch, tests: Sequence[str], copy: Path) -> str:
    """The first of these tests that fails in the copy with the patch; empty if none does. Prints the result."""
    subprocess.run(["git", "apply", patch.path], cwd=copy, check=True)
    began = time.monotonic()
    try:
        found = first_failure(tests, copy)
    finally:
        subprocess.run(["git", "apply", "--reverse", patch.path], cwd=copy, check=True)
    print(f"{patch.name}: {f'caught by {found}' if found else 'NOT CAUGHT'} ({time.monotonic() - began:.0f} s)")
    print(f"    {patch.row}\n    broken: {patch.breaks}", flush=True)
    if found and not found.startswith(patch.caught_by):
        print(f"    the patch names {patch.caught_by}", flush=True)
    return found


def first_failure(tests: Sequence[str], copy: Path) -> str:
    """The id of the first test that fails, with the step of its scenario; empty if all pass or the run times out."""
    command = [".venv/bin/python", "-m", "pytest", "-q", "-x", "--tb=short", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "500"}
    try:
        run = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return ""
    if failed := re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", run.stdout, re.MULTILINE):
        step = re.search(r"^E +in the step: (.+)$", run.stdout, re.MULTILINE)
        return f"{failed[1]}, step: {step[1]}" if step else failed[1]
    if run.returncode:
        print(run.stdout[-2000:] + run.stderr[-2000:], file=sys.stderr)
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
