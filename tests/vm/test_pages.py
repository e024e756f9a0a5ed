"""The pages of `make vm-life` and `make vm-faults`."""

from __future__ import annotations

from tools.vm_faults.page import Row, found_before, page
from tools.vm_life.boot_times import BootPart, BootTimes
from tools.vm_life.page import boot_picture
from tools.vm_life.steps import cpus

ROW = Row(name="disk", title="a disk is full", expected="jobs go on", found="job 7 COMPLETED", date="2026-11-25")


def test_a_page_of_faults_keeps_the_rows_of_other_runs() -> None:
    assert found_before("\n".join(page([ROW]))) == {"disk": ("job 7 COMPLETED", "2026-11-25")}


def test_what_was_found_stays_in_its_cell() -> None:
    row = Row(name="disk", title="full", expected="go on", found="a|b\nc", date="2026-11-25")
    assert list(page([row]))[-1] == "| `disk` | full | go on | a/b c | 2026-11-25 |"


def test_the_picture_has_a_bar_with_its_seconds_for_each_part() -> None:
    part = BootPart(name="MariaDB", began_s=30.0, ended_s=90.0)
    picture = boot_picture([BootTimes(machine="head", parts=(part,), analyzed="", blamed=())])
    assert '<rect x="293.3" y="43" width="366.7" height="14" fill="#2f6db5"/>' in picture
    assert ">60 s</text>" in picture


def test_a_list_of_cpus_has_ranges() -> None:
    assert cpus("0-1,4") == {0, 1, 4}
