"""The parts of a boot, from what systemd and apt print."""

from __future__ import annotations

from tools.vm_life.boot_times import BootPart, apt_parts, unit_parts

SHOWN = """Id=munge.service
InactiveExitTimestampMonotonic=301500000
ActiveEnterTimestampMonotonic=302250000

Id=mariadb.service
InactiveExitTimestampMonotonic=0
ActiveEnterTimestampMonotonic=0

Id=cloud-final.service
InactiveExitTimestampMonotonic=61000000
ActiveEnterTimestampMonotonic=0
"""
APT = """
Start-Date: 2026-11-25  20:01:00
Commandline: apt-get --quiet install munge
Install: munge:amd64 (0.5.16-1)
End-Date: 2026-11-25  20:03:30

Start-Date: 2026-11-25  20:05:00
Commandline: apt-get install slurmd
"""
KERNEL_BEGAN = 1795636830.0  # 2026-11-25 20:00:30 UTC


def test_a_unit_takes_from_its_start_until_it_is_active() -> None:
    assert next(unit_parts(SHOWN)) == BootPart(name="munge", began_s=301.5, ended_s=302.25)


def test_a_unit_that_never_started_has_no_part() -> None:
    assert [part.name for part in unit_parts(SHOWN)] == ["munge", "user data"]


def test_a_unit_that_still_starts_ends_where_it_began() -> None:
    assert list(unit_parts(SHOWN))[1] == BootPart(name="user data", began_s=61.0, ended_s=61.0)


def test_a_run_of_apt_counts_from_the_start_of_the_kernel() -> None:
    assert next(apt_parts(APT, KERNEL_BEGAN)) == BootPart(name="dpkg", began_s=30.0, ended_s=180.0)


def test_a_run_of_apt_that_has_not_ended_has_no_part() -> None:
    assert len(list(apt_parts(APT, KERNEL_BEGAN))) == 1


def test_a_run_of_apt_before_the_boot_has_no_part() -> None:
    assert list(apt_parts(APT, KERNEL_BEGAN + 600)) == []
