"""A pytest plugin for CI: a skipped test fails the run. `make test` loads it where CI is set.

On a person's machine a skip says what is missing; where everything was set up beforehand, it would hide a test.
"""

from collections.abc import Generator

import pytest


class SkipsFail:
    """Counts what was skipped, test by test and whole files at collection."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a skipped test; an expected failure is reported as skipped too, and is none."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that was skipped as a whole."""
        if report.skipped:
            self.skipped.append(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Turn a success with skips into a failure, before the summary is written."""
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say why the run failed, although no test did."""
        if self.skipped:
            terminalreporter.write_line(f"CI fails on skipped tests: {len(self.skipped)} were skipped.", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin's one object."""
    config.pluginmanager.register(SkipsFail(), "corral-skips-fail")
