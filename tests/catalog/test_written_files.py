"""What a tool writes is current: data files; the example in docs/catalog.md can be used."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.catalog_file import parse_catalog

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "catalog.md"


@pytest.mark.parametrize("name", ["instances.toml", "offerings.csv"])
def test_a_data_file_is_what_the_tool_writes(name: str) -> None:
    texts = runpy.run_path(str(ROOT / "tools" / "catalog_data.py"))["texts"]()
    assert texts[name] == (ROOT / "modules/corral/catalog/data" / name).read_text(), "python tools/catalog_data.py"


def test_the_example_adds_a_type_and_its_price() -> None:
    example = PAGE.read_text().split("```toml\n")[1].split("```")[0]
    catalog = parse_catalog(example)
    price = catalog.capacity_block_price("p9.48xlarge", "us-east-1")
    assert (catalog.replaced, price and price.usd_per_hour) == ((), 120.0)


def test_the_mistakes_that_it_shows_are_reported() -> None:
    page = PAGE.read_text()
    example = page.split("```toml\n")[1].split("```")[0]
    with pytest.raises(SpecErrors) as caught:
        parse_catalog(example.replace("cores = 96", "core = 96").replace("us-east-1", "us-esat-1"))
    errors = [f"    {line}" for line in str(caught.value).splitlines()]
    assert [line for line in page.splitlines() if line.startswith("    catalog.toml")] == [errors[0], errors[2]]
