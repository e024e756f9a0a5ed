"""The steps at the end of a cluster, and when."""

from dataclasses import replace

import pytest

from corral.agent.shutdown.lifetime import (
    ClusterActivity,
    Lifetime,
    ShutdownProgress,
    ShutdownStep,
    shutdown_steps,
    steps_without_slurm,
    why_over,
)

NOW = 1_790_000_000.0
FOREVER = Lifetime(ends_at=None, idle_s=None)
IDLE = Lifetime(ends_at=None, idle_s=3600.0)


def at(
    now: float, *, jobs: int = 1, machines: int = 2, unused_s: float = 0.0, up_s: float = 86400.0
) -> ClusterActivity:
    return ClusterActivity(now=now, began_at=now - up_s, used_at=now - unused_s, jobs=jobs, machines=machines)


@pytest.mark.parametrize(
    ("lifetime", "moment", "progress", "steps"),
    [
        (FOREVER, at(NOW, jobs=0, unused_s=1e9), ShutdownProgress(), ()),
        (Lifetime(ends_at=NOW + 901, idle_s=None), at(NOW), ShutdownProgress(), ()),
        (Lifetime(ends_at=NOW + 900, idle_s=None), at(NOW), ShutdownProgress(), (ShutdownStep.WARN,)),
        (Lifetime(ends_at=NOW + 900, idle_s=None), at(NOW), ShutdownProgress(warned=True), ()),
        (
            Lifetime(ends_at=NOW, idle_s=None),
            at(NOW),
            ShutdownProgress(warned=True),
            (ShutdownStep.CLOSE, ShutdownStep.POWER_DOWN_NODES),
        ),
        (Lifetime(ends_at=NOW, idle_s=None), at(NOW), ShutdownProgress(closed=True), (ShutdownStep.POWER_DOWN_NODES,)),
        (Lifetime(ends_at=NOW, idle_s=None), at(NOW, machines=0), ShutdownProgress(closed=True), (ShutdownStep.SAVE,)),
        (
            Lifetime(ends_at=NOW, idle_s=None),
            at(NOW, machines=0),
            ShutdownProgress(closed=True, saved=True),
            (ShutdownStep.POWER_OFF_HEAD,),
        ),
        (IDLE, at(NOW, jobs=0, unused_s=3599), ShutdownProgress(), ()),
        (IDLE, at(NOW, jobs=0, unused_s=3600), ShutdownProgress(), (ShutdownStep.CLOSE, ShutdownStep.POWER_DOWN_NODES)),
        (IDLE, at(NOW, jobs=1, unused_s=3600), ShutdownProgress(), ()),
    ],
)
def test_the_next_steps_of_a_shutdown(
    lifetime: Lifetime, moment: ClusterActivity, progress: ShutdownProgress, steps: tuple[ShutdownStep, ...]
) -> None:
    assert shutdown_steps(lifetime, moment, progress) == steps


def test_a_new_head_of_a_cluster_that_has_ended_stays_some_minutes() -> None:
    lifetime = Lifetime(ends_at=NOW - 86400, idle_s=None)
    found = [why_over(lifetime, at(NOW, up_s=up_s)) for up_s in (299.0, 300.0)]
    assert found == ["", "its lifetime is over"]


ENDED = Lifetime(ends_at=NOW - 300, idle_s=None)


@pytest.mark.parametrize(
    ("lifetime", "moment", "silent_s", "steps"),
    [
        (ENDED, at(NOW), 300, (ShutdownStep.TERMINATE_INSTANCES,)),
        (ENDED, at(NOW), 299, ()),
        (Lifetime(ends_at=NOW - 299, idle_s=None), at(NOW), 86400, ()),
        (FOREVER, at(NOW), 86400, ()),
        (ENDED, at(NOW, machines=0), 300, (ShutdownStep.SAVE,)),
        (IDLE, at(NOW, jobs=0, unused_s=3900), 300, (ShutdownStep.TERMINATE_INSTANCES,)),
        (IDLE, at(NOW, jobs=0, unused_s=3899), 300, ()),
        (IDLE, at(NOW, jobs=1, unused_s=86400), 86400, ()),
        (ENDED, at(NOW, up_s=599), 599, ()),
    ],
    ids=["over", "just silent", "just over", "endless", "empty", "idle", "just idle", "at work", "a new head"],
)
def test_a_cluster_whose_slurm_is_silent_ends_all_the_same(
    lifetime: Lifetime, moment: ClusterActivity, silent_s: float, steps: tuple[ShutdownStep, ...]
) -> None:
    assert (
        steps_without_slurm(lifetime, replace(moment, slurm_silent_since=NOW - silent_s), ShutdownProgress()) == steps
    )


def test_the_head_powers_off_last_without_slurm_too() -> None:
    moment = replace(at(NOW, machines=0), slurm_silent_since=NOW - 300)
    assert steps_without_slurm(ENDED, moment, ShutdownProgress(saved=True)) == (ShutdownStep.POWER_OFF_HEAD,)
