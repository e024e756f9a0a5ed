"""The generated parts of docs/ are up to date."""

from __future__ import annotations

import pytest
from tools.docs.pages import DOCS, texts

TEXTS = texts()


@pytest.mark.parametrize("name", TEXTS)
def test_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == TEXTS[name], "make docs"
