"""Several mistakes in one entry: each is reported with its path, without errors that follow from others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from specs import CLUSTER, edited, project

from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.stack_files import read_environment
from corral.spec.yaml.yaml_reader import read_document

HEAD, _, _ = CLUSTER.partition("    queues:\n")
NOT_A_MARKET = "invalid value 'spott'; did you mean 'spot'?"
IS_A = "aaaaaaaaaaaaaaaaa"


def errors_of(tmp_path: Path, queues: str) -> list[str]:
    """The errors of these queues, without the file name."""
    directory = project(tmp_path, cluster=f"{HEAD}    queues:\n{queues}")
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, "dev")
    return [f"{error.path}: {error.text}" for error in caught.value.errors]


def queue(name: str, type: str = "g5.xlarge", nodes: str = "{max: 1}", capacity: str = "[{market: spot}]") -> str:
    return f"    - {{name: {name}, instance_type: {type}, nodes: {nodes}, capacity: {capacity}}}\n"


def test_a_wrong_market_hides_nothing_else_of_its_queue(tmp_path: Path) -> None:
    wrong = queue("Bad_Name", "p5.48xlrge", "{min: 5, max: 4}", "[{market: spott}]")
    assert errors_of(tmp_path, wrong) == [
        "queues[0].name: 'Bad_Name' is not a valid name - use lowercase letters, digits and hyphens, a letter"
        " first, no hyphen"
        " last",
        "queues[0].instance_type: 'p5.48xlrge' is not in the catalog - did you mean 'p5.48xlarge'?",
        "queues[0].nodes.min: 5 is more than max 4 - use max or less",
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
    ]


def test_a_wrong_market_does_not_hide_the_sum_of_the_nodes(tmp_path: Path) -> None:
    queues = queue("a", nodes="{max: 40000}", capacity="[{market: spott}]") + queue("b", nodes="{max: 40000}")
    assert errors_of(tmp_path, queues) == [
        "queues: have 80000 nodes in total - Slurm allows 65533",
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
    ]


def test_entries_keep_their_numbers_behind_a_wrong_one(tmp_path: Path) -> None:
    queues = queue("z", capacity="[{market: spott}]") + queue("a") + queue("a")
    assert errors_of(tmp_path, queues) == [
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
        "queues[2].name: 'a' is also the name of entry 1 - use another name",
    ]


def test_locations_in_a_message_keep_their_numbers(tmp_path: Path) -> None:
    reserved = f"[{{market: reservation, zones: [use1-az1], ids: [cr-{IS_A}]}}]"
    queues = queue("z", capacity="[{market: spott}]") + queue("a", capacity=reserved) + queue("b", capacity=reserved)
    assert errors_of(tmp_path, queues) == [
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
        f"queues[2].capacity[0].ids[0]: 'cr-{IS_A}' is already used by queues[1].capacity[0] - list it once",
    ]


def test_pools_keep_their_numbers_behind_a_wrong_one(tmp_path: Path) -> None:
    assert errors_of(tmp_path, queue("a", capacity="[{market: spott}, {market: spot}, {market: spot}]")) == [
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
        "queues[0].capacity[2]: spot in every zone is already in entry 1 - use other zones, or remove it",
    ]


def test_what_would_only_follow_from_a_wrong_market_is_not_reported(tmp_path: Path) -> None:
    capacity = f"[{{market: spott, ids: [cr-{IS_A}], max_price: 1.0}}]"
    assert errors_of(tmp_path, queue("a", capacity=capacity)) == [f"queues[0].capacity[0].market: {NOT_A_MARKET}"]


def test_an_entry_without_a_value_and_one_that_lacks_a_field_hide_nothing(tmp_path: Path) -> None:
    queues = "    - {instance_type: p5.48xlrge, nodes: {min: 2, max: none}, capacity: [null]}\n" + queue("A")
    assert errors_of(tmp_path, queues) == [
        "queues[0].instance_type: 'p5.48xlrge' is not in the catalog - did you mean 'p5.48xlarge'?",
        "queues[0].nodes.max: expected a whole number, found 'none'",
        "queues[0].capacity[0]: has no value - set one, or remove the line",
        "queues[0].name: is missing - name of the queue: lowercase letters, digits, hyphens",
        "queues[1].name: 'A' is not a valid name - use lowercase letters, digits and hyphens, a letter first,"
        " no hyphen last",
    ]


def test_a_field_of_another_kind_hides_nothing_next_to_it(tmp_path: Path) -> None:
    wrong = edited(
        queue("a", "p4d.24xlarge", "5", "spot"), [("name: a,", "name: 7, efa: yess, nvme: 'x y', weight: 0,")]
    )
    assert errors_of(tmp_path, wrong) == [
        "queues[0].name: expected text, found 7 - quote it",
        "queues[0].efa: invalid value 'yess'; expected one of auto, on, with-ena, off",
        "queues[0].nvme: 'x y' is not an absolute directory - write it like /scratch",
        "queues[0].weight: 0 is too small - use 1 or more",
        "queues[0].nodes: expected fields (min, max), found 5",
        "queues[0].capacity: expected a list, found 'spot'",
    ]


def test_in_a_list_that_is_too_long_the_entries_are_read(tmp_path: Path) -> None:
    directory = project(
        tmp_path,
        base="config:\n  aws:region: us-east-1\n  corral-base:spec:\n    network: {zones: [use1-az1]}\n"
        "    budget: {usd_per_month: 1, notify: [x, 5, a@b.example, a@b.example" + ", c@d.example" * 8 + "]}\n",
        cluster=CLUSTER.replace("use1-az2", "use1-az1").replace("      address: 10.64.32.20\n", ""),
    )
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, "dev")
    assert [f"{error.path}: {error.text}" for error in caught.value.errors][:4] == [
        "budget.notify: has 12 entries - use at most 10",
        "budget.notify[0]: 'x' is not an email address - write it like a@b.example",
        "budget.notify[1]: expected text, found 5 - quote it",
        "budget.notify[3]: 'a@b.example' is listed twice - keep one",
    ]


def test_a_wrong_file_system_keeps_its_siblings_numbers(tmp_path: Path) -> None:
    systems = "".join(f"        - {{name: {name}, size_gib: 1200, mount: /{name}}}\n" for name in ("b", "c", "c"))
    cluster = edited(CLUSTER, [("      lustre:\n", f"      lustre:\n        - {{name: a, size_gib: big}}\n{systems}")])
    with pytest.raises(SpecErrors) as caught:
        read_environment(project(tmp_path, cluster=cluster), "dev")
    assert [f"{error.path}: {error.text}" for error in caught.value.errors] == [
        "storage.lustre[0].size_gib: expected a whole number, found 'big'",
        "storage.lustre[3].name: 'c' is also the name of entry 2 - use another name",
    ]


def of_file(tmp_path: Path, cluster: str) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        read_environment(project(tmp_path, cluster=cluster), "dev")
    return [": ".join(part for part in (error.path, error.text) if part) for error in caught.value.errors]


@pytest.mark.parametrize(
    ("edit", "mistake"),
    [
        (
            ("root_gib: 150", "root_gib: 15000000000000000000"),
            "line 10, column 17: 15000000000000000000 has too many digits for a number - use a smaller one,"
            " or quote it",
        ),
        (("state_gib: 50", "root_gib: 50"), "line 11, column 7: 'root_gib' is given twice - keep one"),
        (("profile: ubuntu", 'profile: "\\q'), "line 13, column 18: found unknown escape character 'q'"),
        (("state_gib: 50", 'state_gib: "50'), "line 11, column 18: unclosed quote"),
        (("      profile:", "\tprofile:"), "line 13, column 1: a tab where spaces are expected - indent with spaces"),
        (("nodes: {min: 1, max: 4}", "nodes: {min: 1, max: 4"), "line 29, column 16: unclosed brace"),
        (("zone: use1-az2", "zone: *az"), "line 8, column 13: *az has no anchor &az - quote it if it is text"),
        (("aws:region: us-east-1", "aws:region: [us-east-1"), "line 2, column 15: unclosed bracket"),
        (("base: dev", "base: !x dev"), "line 5, column 11: tags such as !x are not supported - write plain values"),
    ],
)
def test_a_mistake_in_yaml_hides_none_elsewhere(edit: tuple[str, str], mistake: str, tmp_path: Path) -> None:
    cluster = edited(CLUSTER, [edit, ("g5.xlarge", "g5.xlrge"), ("ttl: 12h", "ttl: soon")])
    assert of_file(tmp_path, cluster) == [
        mistake,
        "queues[1].instance_type: 'g5.xlrge' is not in the catalog - did you mean 'g5.xlarge'?",
        "lifetime.ttl: 'soon' is not a duration - write it like 10m, 12h, 1h30m or 2d",
    ]


def with_value(text: str) -> Callable[[str], str]:
    """A line with this value; `{}` stands for the former one."""
    return lambda line: re.sub(r": (\S.*)$", lambda found: ": " + text.replace("{}", found[1]), line)


BREAKS: dict[str, Callable[[str], str]] = {
    "indented with a tab": lambda line: f"\t{line.lstrip()}",
    "one blank more": lambda line: f" {line}",
    "one blank less": lambda line: line[1:] if line.startswith(" ") else f"{line} x",
    "no colon": lambda line: line.replace(": ", " ", 1),
    "no blank": lambda line: line.replace(": ", ":", 1),
    "a quote left open": with_value('"{}'),
    "a brace left open": with_value("{{}"),
    "a bracket left open": with_value("[{}"),
    "a brace too many": lambda line: f"{line}}}",
    "an unknown escape": with_value('"\\q"'),
    "two colons": with_value("a: {}"),
    "an alias": with_value("*{}"),
    "a template": with_value("{{ x }}"),
    "a long number": with_value("9" * 30),
    "a line twice": lambda line: f"{line}\n{line}",
    "another document": lambda line: f"---\n{line}",
    "a conflict": lambda line: f"<<<<<<< HEAD\n{line}\n=======\n{line}\n>>>>>>> x",
}


@pytest.mark.parametrize("name", BREAKS)
def test_of_a_broken_line_nothing_else_is_reported_than_that_it_is_broken(name: str, tmp_path: Path) -> None:
    lines, invented = CLUSTER.splitlines(), []
    for number, line in list(enumerate(lines))[len(name) % 9 :: 9]:
        cluster = "\n".join((*lines[:number], BREAKS[name](line), *lines[number + 1 :]))
        if read_document(cluster.encode()).mistakes:
            (folder := tmp_path / str(number)).mkdir()
            invented += [error for error in of_file(folder, cluster) if not error.startswith("line ")]
    assert invented == []
