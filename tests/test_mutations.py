"""The patches of `make mutations` apply, and each breaks what a test keeps: a promise, or a row of docs/security.md."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from tools.mutations.patches import MAP, ROOT, Patch, PatchError, patches, promises, read_patch, sown_defects

EACH = pytest.mark.parametrize("patch", patches(), ids=lambda patch: patch.name)
EACH_DEFECT = pytest.mark.parametrize("defect", sown_defects(), ids=lambda patch: patch.name)
SECURITY_PAGE = ROOT / "docs/security.md"


@pytest.mark.parametrize("patch", [*patches(), *sown_defects()], ids=lambda patch: patch.name)
def test_a_patch_applies(patch: Patch) -> None:
    checked = subprocess.run(["git", "apply", "--check", patch.path], cwd=ROOT, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@EACH
def test_a_patch_is_caught_by_a_test_of_its_promise(patch: Patch) -> None:
    files = promises(MAP.read_text(encoding="utf-8")).get(patch.row, ())
    assert [file for file in files if patch.caught_by.startswith(f"{file}::")] != []


def test_there_are_thirty() -> None:
    assert len(patches()) == 30


@EACH_DEFECT
def test_a_sown_defect_names_a_test_that_exists(defect: Patch) -> None:
    file, _, name = defect.caught_by.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert [one.name for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name] == [name]


def test_each_row_of_the_sown_defects_has_one_patch_that_names_its_test() -> None:
    _, _, section = SECURITY_PAGE.read_text(encoding="utf-8").partition("\n## Sown defects\n")
    rows = re.findall(r"^\| (.+?)(?: \*)? \| `(.+)` \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows) == sorted((defect.row, shown(defect.caught_by)) for defect in sown_defects())


def shown(test: str) -> str:
    """A test as docs/security.md names it."""
    file, _, name = test.partition("::test_")
    return f"{Path(file).stem.removeprefix('test_')}: {name}"


def test_a_patch_without_a_header_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "01-bare.patch").write_text("--- a/README.md\n+++ b/README.md\n")
    with pytest.raises(PatchError, match=r"01-bare\.patch: the first lines must be"):
        read_patch(path)


def test_the_promise_of_a_row_has_its_files() -> None:
    head = "## README.md\n### Top\n| claim | `make test` | `make test-all` adds |\n|---|---|---|\n"
    page = f"{head}| it ends | `life/end: a` | `cli/x` |\n"
    assert promises(page) == {"Top: it ends": ("tests/life/test_end.py", "tests/cli/test_x.py")}
