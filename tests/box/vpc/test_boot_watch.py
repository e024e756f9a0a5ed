"""Which consoles are those of a kernel that stands still at its boot."""

from __future__ import annotations

import pytest

from corral.box.vpc.boot_watch import stands_still

BEGIN, STALL, FIRST = (
    "Linux version 6.12.117\n",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n",
    "systemd[1]: x\n",
)


@pytest.mark.parametrize(
    ("console", "still"),
    [
        (BEGIN, False),
        (BEGIN + STALL, True),
        (BEGIN + FIRST + STALL, False),
        (BEGIN + FIRST + BEGIN + STALL, True),
        (BEGIN + STALL + BEGIN, False),
        ("", False),
    ],
    ids=["boots", "stands-still", "busy-host", "second-boot", "was-reset", "empty"],
)
def test_kernel_stands_still_if_its_last_boot_stalls_before_the_first_process(console: str, still: bool) -> None:
    assert stands_still(console) is still
