"""The dashboards for Grafana: Prometheus reads their expressions, and the builder library's types read the files.

No Grafana has read them: Debian has no package of it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from tools.docs.dashboards import DASHBOARDS

from agent.metrics.promtool import check_rules

DOCS = Path(__file__).parents[2] / "docs"
NAMES = sorted(DASHBOARDS)


def document(name: str) -> Any:
    return json.loads((DOCS / "grafana" / f"{name}.json").read_text(encoding="utf-8"))


def expressions(name: str) -> list[str]:
    return [target["expr"] for panel in document(name)["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("name", NAMES)
def test_prometheus_reads_every_expression(name: str, tmp_path: Path) -> None:
    rules = [{"record": f"panel_{number}", "expr": one} for number, one in enumerate(expressions(name))]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": name, "rules": rules}]}), encoding="utf-8")
    assert check_rules(file) == ""


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_of_a_panel_is_one_that_corral_exports(name: str) -> None:
    listed = set(re.findall(r"^\| `(corral_\w+)` \|", (DOCS / "monitoring.md").read_text(), re.MULTILINE))
    used = {one.removesuffix("_bucket") for text in expressions(name) for one in re.findall(r"corral_\w+", text)}
    assert used - listed == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_types_of_the_builder_library_read_the_file_without_loss(name: str) -> None:
    register_default_plugins()
    read = Dashboard.from_json(document(name))
    assert json.loads(json.dumps(read, cls=JSONEncoder)) == document(name)


@pytest.mark.parametrize("name", NAMES)
def test_panels_have_ids_and_queries_of_the_chosen_prometheus(name: str) -> None:
    panels = document(name)["panels"]
    assert [panel["id"] for panel in panels] == [*range(1, len(panels) + 1)]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}


@pytest.mark.parametrize("name", NAMES)
def test_no_panels_overlap(name: str) -> None:
    cells = [
        (x, y)
        for position in (panel["gridPos"] for panel in document(name)["panels"])
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert (len(cells), max(x for x, _ in cells) < 24) == (len(set(cells)), True)
