"""Golden files, which `--regold` rewrites for review like code, answers of AWS in all tests, and the tests' order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from answer_shapes import DEPARTURES, watch_answers
from bucket_owners import UNOWNED, watch_owners
from corral.box.daemon import daemon_process
from forked_plugins import python_that_forks, use_forked_plugins
from forked_programs import start_daemon
from sim import SEED_VARIABLE, first_seed

# Folders whose files take minutes.
SLOW = {"life", "slurmctld"}
# Waits for minutes at a time, as shipped alerts do: it starts before all others, which run meanwhile.
WAITING = {"test_monitored_cluster.py"}
GOLDEN = Path(__file__).parent / "golden"
Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regold", action="store_true", help="rewrite the golden files with the current output")


def pytest_configure() -> None:
    """Draw the seed of this run's simulations before there are workers, so that all have the same."""
    first_seed()
    watch_answers(DEPARTURES)
    watch_owners()
    daemon_process.start_process = start_daemon


def pytest_report_header() -> str:
    """Show the seed."""
    return f"simulations: from seed {first_seed()} on ({SEED_VARIABLE}={first_seed()} repeats them)"


@pytest.hookimpl(tryfirst=True)  # before -m selects tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests of hypothesis as `long`, and start files that take minutes first."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.long)
    if hasattr(config, "workerinput"):
        items.sort(key=_starts_late)


def _starts_late(item: pytest.Item) -> tuple[bool, bool, bool]:
    return (
        item.path.name not in WAITING,
        item.get_closest_marker("pulumi") is None,
        SLOW.isdisjoint(item.path.parts),
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Load what Pulumi's engine starts once, if a test will start it."""
    if any(item.get_closest_marker("pulumi") for item in session.items):
        use_forked_plugins(python_that_forks())


@pytest.fixture(autouse=True)
def answers_of_the_model() -> Iterator[None]:
    """Fail a test that received an answer which botocore's model does not allow, or in which corral read too much."""
    yield
    found = sorted(set(DEPARTURES))
    DEPARTURES.clear()
    assert found == []


@pytest.fixture(autouse=True)
def owners_of_buckets() -> Iterator[None]:
    """Fail a test in which corral called S3 without the owner of the bucket."""
    yield
    found = sorted(set(UNOWNED))
    UNOWNED.clear()
    assert found == []


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares text with the bytes of tests/golden/<path>; with --regold, writes them first."""
    rewrite = bool(request.config.getoption("--regold"))

    def compare(path: str, text: str) -> None:
        file = GOLDEN / path
        if rewrite:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        assert file.is_file(), f"tests/golden/{path} is missing - `make regold` writes it"
        assert text == file.read_bytes().decode()

    return compare
