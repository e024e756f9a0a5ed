"""Every kind of wrong spec: all mistakes at once, in the order of the files, word for word.

Commands read files; Pulumi programs read the config that Pulumi made of them. Both report the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from specs import BASE, CLUSTER, Edit, as_pulumi, edited, project

from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.stack_files import read_base, read_environment

TABLE = Path(__file__).with_name("wrong_specs.txt")
EDIT = re.compile(r"(base|cluster)([-+])(.*)")
GOOD = {"base": BASE, "cluster": CLUSTER}
BASE_FILE = "stacks/base/Pulumi.dev.yaml: "


@dataclass(slots=True, kw_only=True)
class Wrong:
    """One kind of mistake: the lines that go and come in each file, and every line that users see."""

    name: str
    edits: dict[str, list[tuple[list[str], list[str]]]] = field(default_factory=lambda: {"base": [], "cluster": []})
    expected: list[str] = field(default_factory=list)

    def file(self, kind: str) -> str:
        """The good file of this kind with the edits applied."""
        edits: Sequence[Edit] = [("\n".join(old), "\n".join(new)) for old, new in self.edits[kind]]
        return edited(GOOD[kind], edits)


def entries(text: str) -> Iterator[Wrong]:
    """The entries of the table."""
    for block in text.split("\n\n")[1:]:
        heading, *lines = block.strip("\n").split("\n")
        wrong, before = Wrong(name=heading.strip("[]").replace(" ", "_")), None
        for line in lines:
            edit = EDIT.fullmatch(line)
            if edit is None:
                wrong.expected.append(line)
            else:
                kind, sign, text = edit.groups()
                if sign == "-" and before != (kind, sign):
                    wrong.edits[kind].append(([], []))
                wrong.edits[kind][-1][sign == "+"].append(text)
            before = edit and edit.group(1, 2)
        yield wrong


WRONG = tuple(entries(TABLE.read_text()))
EACH = pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)


@EACH
def test_a_wrong_spec_states_all_that_is_wrong(wrong: Wrong, tmp_path: Path) -> None:
    directory = project(tmp_path, base=wrong.file("base"), cluster=wrong.file("cluster"))
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, "dev")
    assert str(caught.value).split("\n") == wrong.expected


@EACH
def test_no_message_contains_its_fix(wrong: Wrong, tmp_path: Path) -> None:
    directory = project(tmp_path, base=wrong.file("base"), cluster=wrong.file("cluster"))
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, "dev")
    assert [error.message for error in caught.value.errors if " - " in error.message] == []


@pytest.mark.long
@EACH
def test_a_wrong_spec_states_the_same_to_a_program_of_pulumi(wrong: Wrong, tmp_path: Path) -> None:
    cluster = wrong.file("cluster")
    with pytest.raises(SpecErrors) as caught:
        read_environment(project(tmp_path, base=wrong.file("base"), cluster=cluster), "dev", as_pulumi(cluster))
    assert str(caught.value).split("\n") == wrong.expected


WRONG_BASES = tuple(wrong for wrong in WRONG if wrong.expected[0].startswith(BASE_FILE))


@pytest.mark.long
@pytest.mark.parametrize("wrong", WRONG_BASES, ids=lambda wrong: wrong.name)
def test_a_wrong_base_states_the_same_to_its_own_program(wrong: Wrong, tmp_path: Path) -> None:
    base = wrong.file("base")
    with pytest.raises(SpecErrors) as caught:
        read_base(project(tmp_path, base=base), "dev", as_pulumi(base))
    assert str(caught.value).split("\n") == [line for line in wrong.expected if line.startswith(BASE_FILE)]
