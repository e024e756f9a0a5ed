"""Every `make X` in messages and pages is a target of the Makefile."""

from __future__ import annotations

import re

from calls import REPOSITORY

PAGES = (*REPOSITORY.glob("modules/**/*.py"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("*.md"))


def test_every_named_target_exists() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    named = {
        (str(page.relative_to(REPOSITORY)), target)
        for page in PAGES
        for words in re.findall(r"`make ((?:[A-Z]+=\S+ )*[a-z][a-z -]*)", page.read_text())
        for target in words.split()
        if "=" not in target
    }
    assert len(named) > 10
    assert {one for one in named if one[1] not in targets} == set()
