"""Several mistakes in one entry: each is told, at its own place, and none that only follows from another."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from specs import CLUSTER, edited, project

from corral.spec.errors import SpecErrors
from corral.spec.files import read_environment
from corral.spec.yaml_text import read_document

HEAD, _, _ = CLUSTER.partition("    queues:\n")
NOT_A_MARKET = "'spott' is not possible - did you mean 'spot'?"
IS_A = "aaaaaaaaaaaaaaaaa"


def told(tmp_path: Path, queues: str) -> list[str]:
    """What is told of these queues, without the name of the file."""
    directory = project(tmp_path, cluster=f"{HEAD}    queues:\n{queues}")
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, "dev")
    return [f"{error.path}: {error.message}" for error in caught.value.errors]


def queue(name: str, type: str = "g5.xlarge", nodes: str = "{max: 1}", capacity: str = "[{market: spot}]") -> str:
    return f"    - {{name: {name}, instance_type: {type}, nodes: {nodes}, capacity: {capacity}}}\n"


def test_a_wrong_market_hides_nothing_else_of_its_queue(tmp_path: Path) -> None:
    wrong = queue("Bad_Name", "p5.48xlrge", "{min: 5, max: 4}", "[{market: spott}]")
    assert told(tmp_path, wrong) == [
        "queues[0].name: 'Bad_Name' is not a name - use small letters, digits and hyphens, a letter first, no hyphen"
        " last",
        "queues[0].instance_type: 'p5.48xlrge' is not in the catalogue - did you mean 'p5.48xlarge'?",
        "queues[0].nodes.min: 5 is more than max 4 - use max or less",
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
    ]


def test_a_wrong_market_does_not_hide_the_sum_of_the_nodes(tmp_path: Path) -> None:
    queues = queue("a", nodes="{max: 40000}", capacity="[{market: spott}]") + queue("b", nodes="{max: 40000}")
    assert told(tmp_path, queues) == [
        "queues: have 80000 nodes together - Slurm takes 65533",
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
    ]


def test_entries_keep_their_numbers_behind_a_wrong_one(tmp_path: Path) -> None:
    queues = queue("z", capacity="[{market: spott}]") + queue("a") + queue("a")
    assert told(tmp_path, queues) == [
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
        "queues[2].name: 'a' is also the name of entry 1 - each needs its own",
    ]


def test_places_in_a_message_keep_their_numbers(tmp_path: Path) -> None:
    reserved = f"[{{market: reservation, zones: [use1-az1], ids: [cr-{IS_A}]}}]"
    queues = queue("z", capacity="[{market: spott}]") + queue("a", capacity=reserved) + queue("b", capacity=reserved)
    assert told(tmp_path, queues) == [
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
        f"queues[2].capacity[0].ids[0]: 'cr-{IS_A}' is used by queues[1].capacity[0] already - name it once",
    ]


def test_pools_keep_their_numbers_behind_a_wrong_one(tmp_path: Path) -> None:
    assert told(tmp_path, queue("a", capacity="[{market: spott}, {market: spot}, {market: spot}]")) == [
        f"queues[0].capacity[0].market: {NOT_A_MARKET}",
        "queues[0].capacity[2]: spot in every zone is in entry 1 already - name other zones, or leave it out",
    ]


def test_what_would_only_follow_from_a_wrong_market_is_not_told(tmp_path: Path) -> None:
    capacity = f"[{{market: spott, ids: [cr-{IS_A}], max_price: 1.0}}]"
    assert told(tmp_path, queue("a", capacity=capacity)) == [f"queues[0].capacity[0].market: {NOT_A_MARKET}"]


def test_an_entry_without_a_value_and_one_that_lacks_a_field_hide_nothing(tmp_path: Path) -> None:
    queues = "    - {instance_type: p5.48xlrge, nodes: {min: 2, max: none}, capacity: [null]}\n" + queue("A")
    assert told(tmp_path, queues) == [
        "queues[0].instance_type: 'p5.48xlrge' is not in the catalogue - did you mean 'p5.48xlarge'?",
        "queues[0].nodes.max: expected a whole number, found 'none'",
        "queues[0].capacity[0]: has no value - give one, or leave the line out",
        "queues[0].name: is missing - name of the queue: small letters, digits, hyphens",
        "queues[1].name: 'A' is not a name - use small letters, digits and hyphens, a letter first, no hyphen last",
    ]


def test_a_field_of_another_kind_hides_nothing_beside_it(tmp_path: Path) -> None:
    wrong = edited(
        queue("a", "p4d.24xlarge", "5", "spot"), [("name: a,", "name: 7, efa: yess, nvme: 'x y', weight: 0,")]
    )
    assert told(tmp_path, wrong) == [
        "queues[0].name: expected text, found 7 - put it in quotes",
        "queues[0].efa: 'yess' is not possible - known are auto, on, with-ena, off",
        "queues[0].nvme: 'x y' is not a directory to mount on - write it like /scratch",
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
    assert [f"{error.path}: {error.message}" for error in caught.value.errors][:4] == [
        "budget.notify: has 12 entries - at most 10 are possible",
        "budget.notify[0]: 'x' is not a mail address - write it like a@b.example",
        "budget.notify[1]: expected text, found 5 - put it in quotes",
        "budget.notify[3]: 'a@b.example' is listed twice - keep one",
    ]


def test_a_wrong_file_system_keeps_its_siblings_numbers(tmp_path: Path) -> None:
    systems = "".join(f"        - {{name: {name}, size_gib: 1200, mount: /{name}}}\n" for name in ("b", "c", "c"))
    cluster = edited(CLUSTER, [("      lustre:\n", f"      lustre:\n        - {{name: a, size_gib: big}}\n{systems}")])
    with pytest.raises(SpecErrors) as caught:
        read_environment(project(tmp_path, cluster=cluster), "dev")
    assert [f"{error.path}: {error.message}" for error in caught.value.errors] == [
        "storage.lustre[0].size_gib: expected a whole number, found 'big'",
        "storage.lustre[3].name: 'c' is also the name of entry 2 - each needs its own",
    ]


def of_file(tmp_path: Path, cluster: str) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        read_environment(project(tmp_path, cluster=cluster), "dev")
    return [": ".join(part for part in (error.path, error.message) if part) for error in caught.value.errors]


@pytest.mark.parametrize(
    ("edit", "mistake"),
    [
        (
            ("root_gib: 150", "root_gib: 15000000000000000000"),
            "line 10, column 17: 15000000000000000000 has too many digits for a number - use a smaller one, or quotes"
            " where it is text",
        ),
        (("state_gib: 50", "root_gib: 50"), "line 11, column 7: 'root_gib' is given twice - keep one"),
        (("profile: ubuntu", 'profile: "\\q'), "line 13, column 18: found unknown escape character 'q'"),
        (("state_gib: 50", 'state_gib: "50'), "line 11, column 18: a quote that is not closed"),
        (("      profile:", "\tprofile:"), "line 13, column 1: a tab where spaces are expected - indent with spaces"),
        (("nodes: {min: 1, max: 4}", "nodes: {min: 1, max: 4"), "line 29, column 16: a brace that is not closed"),
        (("zone: use1-az2", "zone: *az"), "line 8, column 13: there is no &az for *az - quote it where it is text"),
        (("aws:region: us-east-1", "aws:region: [us-east-1"), "line 2, column 15: a bracket that is not closed"),
        (("base: dev", "base: !x dev"), "line 5, column 11: tags such as !x are not supported - write plain values"),
    ],
)
def test_a_mistake_in_yaml_hides_none_elsewhere(edit: tuple[str, str], mistake: str, tmp_path: Path) -> None:
    cluster = edited(CLUSTER, [edit, ("g5.xlarge", "g5.xlrge"), ("ttl: 12h", "ttl: soon")])
    assert of_file(tmp_path, cluster) == [
        mistake,
        "queues[1].instance_type: 'g5.xlrge' is not in the catalogue - did you mean 'g5.xlarge'?",
        "lifetime.ttl: 'soon' is not a duration - write it like 10m, 12h, 1h30m or 2d",
    ]


def with_value(text: str) -> Callable[[str], str]:
    """A line with this in the place of its value, `{}` for what stood there."""
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
def test_of_a_broken_line_nothing_else_is_told_than_that_it_is_broken(name: str, tmp_path: Path) -> None:
    lines, invented = CLUSTER.splitlines(), []
    for number, line in list(enumerate(lines))[len(name) % 3 :: 3]:
        cluster = "\n".join((*lines[:number], BREAKS[name](line), *lines[number + 1 :]))
        if read_document(cluster.encode()).mistakes:
            (folder := tmp_path / str(number)).mkdir()
            invented += [told for told in of_file(folder, cluster) if not told.startswith("line ")]
    assert invented == []
