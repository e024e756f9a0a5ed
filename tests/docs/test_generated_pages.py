"""The generated parts of docs/ are up to date."""

from __future__ import annotations

import pytest
from tools.docs.pages import DOCS, PAGES, text


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == text(name), "make docs"
