"""What README.md shows is what corral has and prints."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from corral.forecast.published.speed_validation import PublishedTable, shipped_runs
from corral.model.enums import Market
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT

README = (PROJECT / "README.md").read_text()
PAGES = (PROJECT / "README.md", PROJECT / "CHANGELOG.md", *sorted((PROJECT / "docs").glob("*.md")))
SOURCES = "\n".join(file.read_text() for file in sorted((PROJECT / "modules/corral").rglob("*.py")))


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub links to them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_its_section(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)# ]*)(?:#([^)]+))?\)", page.read_text())
    targets = [(page.parent / path if path else page, anchor) for path, anchor in links]
    missing = [str(target) for target, _ in targets if not target.exists()]
    wrong = [anchor for target, anchor in targets if anchor and anchor not in anchors(target)]
    assert (missing, wrong) == ([], [])


def test_the_shown_lines_of_a_plan_are_printed() -> None:
    example = README.partition("    $ corral plan dev\n")[2].splitlines()
    shown = [line.strip() for line in takewhile(str.strip, example)]
    command = [sys.executable, "-m", "corral.cli", "plan", "dev"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    printed = [line.strip() for line in done.stdout.splitlines()]
    assert (len(shown), [line for line in shown if line not in printed]) == (8, [])


def test_dev_has_four_p4d_by_spot_before_on_demand_and_a_scratch_of_its_own() -> None:
    cluster = read_environment(PROJECT, "dev").cluster
    (queue,) = cluster.queues
    assert (queue.instance_type, queue.nodes.max) == ("p4d.24xlarge", 4)
    assert [pool.market for pool in queue.capacity] == [Market.SPOT, Market.ON_DEMAND]
    assert [system.name for system in cluster.storage.lustre] == ["scratch"]


def test_train_has_sixteen_p5_by_block_reservation_and_spot_and_lustre_with_efa_in_its_base() -> None:
    environment = read_environment(PROJECT, "train")
    (queue,) = environment.cluster.queues
    assert (queue.instance_type, queue.nodes.max) == ("p5.48xlarge", 16)
    assert [pool.market for pool in queue.capacity] == [Market.CAPACITY_BLOCK, Market.RESERVATION, Market.SPOT]
    assert [(system.deployment, system.efa) for system in environment.base.storage.lustre] == [("PERSISTENT_2", True)]


def test_mixed_has_queues_of_h200_l40s_and_trainium_in_an_existing_vpc() -> None:
    environment = read_environment(PROJECT, "mixed")
    products = [
        machine.accelerator.product
        for queue in environment.cluster.queues
        if (machine := environment.catalog.instance_type(queue.instance_type)).accelerator
    ]
    assert (products, environment.base.network.adopt is not None) == (["H200", "L40S", "Trainium"], True)


def test_held_out_runs_are_as_many_as_stated() -> None:
    (stated,) = re.findall(r"on (\d+) held-out published runs", README)
    assert int(stated) == len(shipped_runs(PublishedTable.HELD_OUT))


def test_messages_under_troubleshooting_are_those_of_corral() -> None:
    rows = README.partition("## Troubleshooting")[2].partition("## ")[0].splitlines()
    messages = [message for row in rows for message in re.findall(r"^\| `([^`]+)` \|", row)]
    patterns = [re.escape(message).replace(r"\.\.\.", ".*") for message in messages]
    assert (len(messages), [one for one in patterns if not re.search(one, SOURCES)]) == (3, [])
