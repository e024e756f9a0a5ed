"""What slurm.conf takes, by release: the table by itself, and against the libraries of the releases that are here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from tools.slurm_matrix.roots import slurm_roots

from catalog.slurm_libraries import keys_taken
from corral.catalog.loader.data_files import read_toml
from corral.catalog.slurm.conf_keys import (
    ConfSection,
    ConfSetting,
    slurm_changes,
    slurm_keys,
    supported_releases,
    unsupported_settings,
)
from corral.catalog.slurm.conf_values import Type, value_types
from corral.catalog.slurm.releases import RELEASES, parse_release, release_text

SECTIONS = (ConfSection.CONF, ConfSection.NODE, ConfSection.PARTITION)
LIBRARY = "usr/lib/*/slurm-wlm/libslurmfull.so"
ROOTS = slurm_roots()
# What a library still reads, and the table refuses: slurmctld exits over it or ignores it, or it became another key.
READ_STILL = {
    ConfSection.CONF: {
        "AccountingStorageLoc": "22.05",
        "AccountingStoreJobComment": "22.05",
        "FastSchedule": "22.05",
        "FrontendName": "22.05",
        "SallocDefaultCommand": "22.05",
        "RoutePlugin": "23.11",
        "JobContainerType": "25.11",
    },
    ConfSection.NODE: {},
    ConfSection.PARTITION: {"ExclusiveUser": "26.05", "ExclusiveTopo": "26.05"},
}


@pytest.mark.slurm
@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name.lower())
@pytest.mark.parametrize("release", ROOTS)
def test_a_release_takes_the_keys_that_its_library_reads(release: str, section: ConfSection) -> None:
    refused = {key for key, until in READ_STILL[section].items() if release >= until}
    (library,) = ROOTS[release].glob(LIBRARY)
    assert taken(release, section) == read(library)[section].keys() - refused


@pytest.mark.slurm
@pytest.mark.parametrize("section", [ConfSection.CONF, ConfSection.PARTITION], ids=lambda section: section.name.lower())
@pytest.mark.parametrize("release", ROOTS)
def test_a_release_reads_each_value_as_the_type_that_the_table_states(release: str, section: ConfSection) -> None:
    (library,) = ROOTS[release].glob(LIBRARY)
    found = {key: type_ for key, type_ in read(library)[section].items() if key in taken(release, section)}
    assert found == {key: value_types(section).get(key, Type.TEXT) for key in found} | retyped(release, section)


def retyped(release: str, section: ConfSection) -> dict[str, Type]:
    """Keys of corral's own, whose lines a later release takes more than once."""
    several = ("Epilog", "EpilogSlurmctld", "Prolog", "PrologSlurmctld")
    return dict.fromkeys(several, Type.LINES) if section is ConfSection.CONF and release >= "24.11" else {}


@cache
def read(library: Path) -> Mapping[ConfSection, Mapping[str, Type]]:
    return keys_taken(library)


def taken(release: str, section: ConfSection) -> set[str]:
    """The keys of this release in the table."""
    return {
        name for name in slurm_keys(section).values() if not unsupported_settings(parse_release(release), section, name)
    }


@pytest.mark.parametrize(
    ("release", "section", "count"),
    [
        ("22.05", ConfSection.CONF, 220),
        ("26.05", ConfSection.CONF, 234),
        ("22.05", ConfSection.NODE, 24),
        ("26.05", ConfSection.NODE, 29),
        ("22.05", ConfSection.PARTITION, 42),
        ("26.05", ConfSection.PARTITION, 45),
    ],
)
def test_a_release_takes_so_many_keys(release: str, section: ConfSection, count: int) -> None:
    assert len(taken(release, section)) == count


def test_every_setting_that_came_or_went_has_a_source_and_states_what_happened() -> None:
    assert [row.text for row in slurm_changes() if not row.source.strip() or not row.change.strip()] == []


def test_no_setting_is_listed_twice() -> None:
    listed = [(row.text.lower(), row.section) for row in slurm_changes()]
    assert sorted(set(listed)) == sorted(listed)


def test_no_key_of_every_release_is_listed_as_changed() -> None:
    lasting = read_toml("slurm_conf.toml")["keys"]
    changed = {(row.section, row.key) for row in slurm_changes() if row.value is None}
    assert {(section, key) for section in SECTIONS for key in lasting[section.name.lower()]} & changed == set()


def test_every_setting_came_or_went_with_a_release_that_is_known() -> None:
    ends = [(row.since, row.until) for row in slurm_changes()]
    assert {end for pair in ends for end in pair if end} <= set(RELEASES)


def test_every_setting_differs_between_two_releases_or_from_all() -> None:
    assert [row.text for row in slurm_changes() if all(row.holds(release) for release in RELEASES)] == []


def test_a_key_is_the_same_in_any_case() -> None:
    assert slurm_keys(ConfSection.CONF)["maxjobcount"] == "MaxJobCount"


def test_a_key_that_a_release_does_not_know_yet_is_named() -> None:
    assert texts("22.05", ConfSection.CONF, "suspendexcstates", "DOWN") == ["SuspendExcStates: Slurm from 23.02"]


def test_a_key_that_a_release_knows_is_none_that_does_not_fit() -> None:
    assert texts("23.02", ConfSection.CONF, "suspendexcstates", "DOWN") == []


def test_a_value_that_a_release_does_not_know_yet_is_named() -> None:
    found = texts("24.11", ConfSection.CONF, "SchedulerParameters", "bf_window=5,requeue_delay=3")
    assert found == ["SchedulerParameters=requeue_delay: Slurm from 25.11"]


def test_a_key_of_a_partition_is_validated_as_one() -> None:
    found = texts("26.05", ConfSection.PARTITION, "ExclusiveTopo", "YES")
    assert found == ["ExclusiveTopo: Slurm before 26.05 (new; then deprecated for Exclusive=TOPO)"]


def test_a_key_of_a_section_is_none_of_another() -> None:
    assert texts("22.05", ConfSection.CONF, "PowerDownOnIdle", "YES") == []


def texts(release: str, section: ConfSection, key: str, value: str) -> list[str]:
    number = parse_release(release)
    return [
        f"{row.text}: {supported_releases(number, row)}" for row in unsupported_settings(number, section, key, value)
    ]


@pytest.mark.parametrize(
    ("release", "holds"), [("23.11", False), ("24.05", True), ("25.11", True), ("26.05", False), ("27.11", False)]
)
def test_a_setting_holds_from_its_first_release_to_the_one_before_it_went(release: str, holds: bool) -> None:
    row = ConfSetting(
        key="ExclusiveTopo", since=(24, 5), until=(26, 5), change="new", source="-", section=ConfSection.PARTITION
    )
    assert row.holds(parse_release(release)) is holds


@pytest.mark.parametrize("version", ["", "23", "23.x", "v23.11", "\u0662\u0663.\u0661\u0661"])
def test_what_is_no_version_is_refused_with_a_sentence(version: str) -> None:
    with pytest.raises(ValueError, match="is not a Slurm version - write it like"):
        parse_release(version)


@pytest.mark.parametrize(("version", "text"), [("23.11.4", "23.11"), ("23.02", "23.02"), ("26.05.5-1", "26.05")])
def test_a_version_is_of_a_release(version: str, text: str) -> None:
    assert release_text(parse_release(version)) == text
