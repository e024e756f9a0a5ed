"""When the autoscaler applies: once per manifest, again after an interruption, not again after a refusal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from corral.agent.config.merge import IN_USE_COMMENT
from corral.agent.config.poller import ConfigPoller
from corral.agent.host.base import HostError


class Applies:
    """Counts, and ends with these codes before it succeeds."""

    def __init__(self, *codes: int) -> None:
        self.times, self._codes = 0, iter(codes)

    def __call__(self) -> None:
        self.times += 1
        if code := next(self._codes, 0):
            raise HostError(f"corral-agent apply failed with {code}", code)


def looked(applies: Applies, tags: Iterator[str], pending: Callable[[], bool], slurm_conf: Path, times: int) -> int:
    """How often it applied in so many looks."""
    configuration = ConfigPoller(tag=lambda: next(tags), apply=applies, slurm_conf=slurm_conf, pending=pending)
    for _ in range(times):
        with suppress(HostError):
            configuration.poll()
    return applies.times


@pytest.mark.parametrize(
    ("codes", "tags", "applied"),
    [
        ((), "aaa", 1),
        ((), "aab", 2),
        ((1,), "aaa", 2),
        ((3, 3), "aaa", 3),
        ((4,), "aaa", 1),
        ((4,), "aab", 2),
    ],
)
def test_each_manifest_is_applied_until_it_is_done_or_refused(
    tmp_path: Path, codes: tuple[int, ...], tags: str, applied: int
) -> None:
    assert looked(Applies(*codes), iter(tags), lambda: False, tmp_path / "none", len(tags)) == applied


def test_an_interrupted_apply_is_completed_by_the_next_poll(tmp_path: Path) -> None:
    left = iter([False, True, False])
    assert looked(Applies(), iter("aaa"), lambda: next(left, False), tmp_path / "none", 3) == 2


def test_pending_removals_are_applied_at_each_poll(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(f"{IN_USE_COMMENT}\n")
    assert looked(Applies(), iter("aaa"), lambda: False, tmp_path / "slurm.conf", 3) == 3
