"""The patches of `make mutations` apply, and each breaks a promise of docs/promises.md that a test keeps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tools.mutations.patches import MAP, ROOT, Patch, PatchError, patches, promises, read_patch

EACH = pytest.mark.parametrize("patch", patches(), ids=lambda patch: patch.name)


@EACH
def test_a_patch_applies(patch: Patch) -> None:
    checked = subprocess.run(["git", "apply", "--check", patch.path], cwd=ROOT, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@EACH
def test_a_patch_is_caught_by_a_test_of_its_promise(patch: Patch) -> None:
    files = promises(MAP.read_text(encoding="utf-8")).get(patch.promise, ())
    assert [file for file in files if patch.caught_by.startswith(f"{file}::")] != []


def test_there_are_thirty() -> None:
    assert len(patches()) == 30


def test_a_patch_without_a_header_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "01-bare.patch").write_text("--- a/README.md\n+++ b/README.md\n")
    with pytest.raises(PatchError, match=r"01-bare\.patch: the first lines must be"):
        read_patch(path)


def test_the_promise_of_a_row_has_its_files() -> None:
    head = "## README.md\n### Top\n| claim | `make test` | `make test-all` adds |\n|---|---|---|\n"
    page = f"{head}| it ends | `life/end: a` | `cli/x` |\n"
    assert promises(page) == {"Top: it ends": ("tests/life/test_end.py", "tests/cli/test_x.py")}
