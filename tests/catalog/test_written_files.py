"""What a tool writes is current: data files, tables of the docs; the example in docs/catalog.md can be used."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from corral.catalog import reference, reliability_reference
from corral.catalog.problems import CatalogueErrors
from corral.catalog.project import parse_catalogue

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "catalog.md"


@pytest.mark.parametrize("name", ["instances.toml", "offerings.csv"])
def test_a_data_file_is_what_the_tool_writes(name: str) -> None:
    texts = runpy.run_path(str(ROOT / "tools" / "catalogue.py"))["texts"]()
    assert texts[name] == (ROOT / "modules/corral/catalog/data" / name).read_text(), "python tools/catalogue.py"


def test_the_tables_are_current() -> None:
    assert reference.fill(PAGE.read_text()) == PAGE.read_text(), "python -m corral.catalog.reference docs/catalog.md"


def test_the_tables_of_reliability_are_current() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text()
    assert reliability_reference.fill(text) == text, (
        "python -m corral.catalog.reliability_reference docs/reliability.md"
    )


def test_the_example_adds_a_type_and_its_price() -> None:
    example = PAGE.read_text().split("```toml\n")[1].split("```")[0]
    catalogue = parse_catalogue(example)
    price = catalogue.capacity_block_price("p9.48xlarge", "us-east-1")
    assert (catalogue.replaced, price and price.usd_per_hour) == ((), 120.0)


def test_the_mistakes_that_it_shows_are_told_so() -> None:
    page = PAGE.read_text()
    example = page.split("```toml\n")[1].split("```")[0]
    with pytest.raises(CatalogueErrors) as caught:
        parse_catalogue(example.replace("cores = 96", "core = 96").replace("us-east-1", "us-esat-1"))
    told = [f"    {line}" for line in str(caught.value).splitlines()]
    assert [line for line in page.splitlines() if line.startswith("    catalogue.toml")] == [told[0], told[2]]
