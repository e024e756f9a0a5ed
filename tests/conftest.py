"""What tests of several rooms share: golden files, which `--regold` rewrites for review like code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regold", action="store_true", help="rewrite the golden files with what the code gives now")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where workers share the tests, the files that take minutes come first: the short ones then fill the gaps."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (item.get_closest_marker("pulumi") is None, "life" not in item.path.parts))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with the bytes of tests/golden/<path>, or writes them under --regold."""
    rewrite = bool(request.config.getoption("--regold"))

    def compare(path: str, text: str) -> None:
        file = GOLDEN / path
        if rewrite:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        assert file.is_file(), f"tests/golden/{path} is missing - `make regold` writes it"
        assert text == file.read_bytes().decode()

    return compare
