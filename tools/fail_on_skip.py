"""A pytest plugin for CI: a skipped test fails the run. The test targets of the Makefile load it if CI is set.

On a user's machine, a skip says what is missing. In CI everything is installed, and a skip would hide a test.
"""

from collections.abc import Generator

import pytest


class SkipsFail:
    """Collects the skipped tests, and the files that were skipped at collection."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a skipped test. Expected failures are reported as skipped too, and do not count."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that was skipped."""
        if report.skipped:
            self.skipped.append(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Turn a success with skips into a failure, before the summary."""
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print why the run failed although no test did."""
        if self.skipped:
            terminalreporter.write_line(f"CI fails because of {len(self.skipped)} skipped tests.", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin's one object."""
    config.pluginmanager.register(SkipsFail(), "corral-skips-fail")
