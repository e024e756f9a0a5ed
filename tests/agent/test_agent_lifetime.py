"""The end of a cluster: what its head does, and when."""

from dataclasses import replace

import pytest

from corral.agent.lifetime import Life, Moment, Progress, Step, next_steps, steps_without_slurm, why_over

NOW = 1_790_000_000.0
FOREVER = Life(ends_at=None, idle_s=None)
IDLE = Life(ends_at=None, idle_s=3600.0)


def at(now: float, *, jobs: int = 1, machines: int = 2, unused_s: float = 0.0, up_s: float = 86400.0) -> Moment:
    return Moment(now=now, began_at=now - up_s, used_at=now - unused_s, jobs=jobs, machines=machines)


@pytest.mark.parametrize(
    ("life", "moment", "progress", "steps"),
    [
        (FOREVER, at(NOW, jobs=0, unused_s=1e9), Progress(), ()),
        (Life(ends_at=NOW + 901, idle_s=None), at(NOW), Progress(), ()),
        (Life(ends_at=NOW + 900, idle_s=None), at(NOW), Progress(), (Step.WARN,)),
        (Life(ends_at=NOW + 900, idle_s=None), at(NOW), Progress(warned=True), ()),
        (Life(ends_at=NOW, idle_s=None), at(NOW), Progress(warned=True), (Step.CLOSE, Step.END_MACHINES)),
        (Life(ends_at=NOW, idle_s=None), at(NOW), Progress(closed=True), (Step.END_MACHINES,)),
        (Life(ends_at=NOW, idle_s=None), at(NOW, machines=0), Progress(closed=True), (Step.SAVE,)),
        (Life(ends_at=NOW, idle_s=None), at(NOW, machines=0), Progress(closed=True, saved=True), (Step.LEAVE,)),
        (IDLE, at(NOW, jobs=0, unused_s=3599), Progress(), ()),
        (IDLE, at(NOW, jobs=0, unused_s=3600), Progress(), (Step.CLOSE, Step.END_MACHINES)),
        (IDLE, at(NOW, jobs=1, unused_s=3600), Progress(), ()),
    ],
)
def test_what_follows(life: Life, moment: Moment, progress: Progress, steps: tuple[Step, ...]) -> None:
    assert next_steps(life, moment, progress) == steps


def test_a_new_head_of_a_cluster_that_has_ended_stays_some_minutes() -> None:
    life = Life(ends_at=NOW - 86400, idle_s=None)
    found = [why_over(life, at(NOW, up_s=up_s)) for up_s in (299.0, 300.0)]
    assert found == ["", "its hour has come"]


ENDED = Life(ends_at=NOW - 300, idle_s=None)


@pytest.mark.parametrize(
    ("life", "moment", "silent_s", "steps"),
    [
        (ENDED, at(NOW), 300, (Step.END_INSTANCES,)),
        (ENDED, at(NOW), 299, ()),
        (Life(ends_at=NOW - 299, idle_s=None), at(NOW), 86400, ()),
        (FOREVER, at(NOW), 86400, ()),
        (ENDED, at(NOW, machines=0), 300, (Step.SAVE,)),
        (IDLE, at(NOW, jobs=0, unused_s=3900), 300, (Step.END_INSTANCES,)),
        (IDLE, at(NOW, jobs=0, unused_s=3899), 300, ()),
        (IDLE, at(NOW, jobs=1, unused_s=86400), 86400, ()),
        (ENDED, at(NOW, up_s=599), 599, ()),
    ],
    ids=["over", "just silent", "just over", "endless", "empty", "idle", "just idle", "at work", "a new head"],
)
def test_a_cluster_whose_slurm_is_silent_ends_all_the_same(
    life: Life, moment: Moment, silent_s: float, steps: tuple[Step, ...]
) -> None:
    assert steps_without_slurm(life, replace(moment, silent_since=NOW - silent_s), Progress()) == steps


def test_the_head_goes_last_without_slurm_too() -> None:
    moment = replace(at(NOW, machines=0), silent_since=NOW - 300)
    assert steps_without_slurm(ENDED, moment, Progress(saved=True)) == (Step.LEAVE,)
