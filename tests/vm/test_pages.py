"""The pages of `make vm-life` and `make vm-faults`."""

from __future__ import annotations

from pathlib import Path

from tools.vm_faults.page import Row, found_before, page
from tools.vm_life.__main__ import chosen_steps
from tools.vm_life.boot_times import BootPart, BootTimes
from tools.vm_life.job_attacks import ON_A_NODE, ON_THE_HEAD
from tools.vm_life.page import boot_picture, with_steps
from tools.vm_life.progress import StepResult
from tools.vm_life.steps import Step, cpus

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


PAGE = """# A cluster

| step | seconds | on | found |
|---|---:|---|---|
| up | 35 | 2026-11-25 | a head |
| of long ago | 1 | 2026-11-25 | nothing |
| down | 96 | 2026-11-25 | nothing is left |

## Boots
"""
RESULT = StepResult(title="people", seconds=1234.5, found="ada|grace", date="2026-11-28")


def test_a_run_of_some_steps_replaces_their_rows_and_keeps_the_others() -> None:
    assert with_steps(PAGE, [RESULT], ["up", "people", "down"]).splitlines() == [
        "# A cluster",
        "",
        "| step | seconds | on | found |",
        "|---|---:|---|---|",
        "| up | 35 | 2026-11-25 | a head |",
        "| people | 1,234 | 2026-11-28 | ada, grace |",
        "| down | 96 | 2026-11-25 | nothing is left |",
        "",
        "## Boots",
    ]


def test_a_row_is_replaced_again() -> None:
    once = with_steps(PAGE, [RESULT], ["up", "people"])
    again = StepResult(title="people", seconds=5, found="bo", date="2026-11-29")
    assert "| people | 5 | 2026-11-29 | bo |" in with_steps(once, [again], ["up", "people"])


def test_chosen_steps_come_with_those_that_they_need() -> None:
    up, people, cores = (
        Step(title=title, act=lambda _: "", is_needed=title == "up") for title in ("up", "people come", "cores")
    )
    assert chosen_steps((up, people, cores), ["people"]) == (up, people)


def test_without_a_word_all_steps_are_chosen() -> None:
    steps = tuple(Step(title=title, act=lambda _: "") for title in ("people", "cores"))
    assert chosen_steps(steps, ()) == steps


def test_the_page_about_security_has_the_number_of_acts() -> None:
    page = (Path(__file__).parents[2] / "docs/security.md").read_text(encoding="utf-8")
    assert f" try {len(ON_A_NODE) + len(ON_THE_HEAD)} acts: " in page
