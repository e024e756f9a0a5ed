"""What slurm.conf takes, by release: the table by itself, and against the libraries of the releases that are here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from tools.slurm_matrix.roots import slurm_roots

from catalog.slurm_libraries import keys_taken
from corral.catalog.slurm_releases import RELEASES, parse_release, release_text
from corral.catalog.slurm_settings import Place, Setting, misfits, slurm_changes, slurm_keys, span_beside
from corral.catalog.slurm_values import Type, value_types
from corral.catalog.tables import read_toml

PLACES = (Place.CONF, Place.NODE, Place.PARTITION)
LIBRARY = "usr/lib/*/slurm-wlm/libslurmfull.so"
ROOTS = slurm_roots()
# What a library still reads, and the table refuses: slurmctld ends over it or ignores it, or it has become another key.
READ_STILL = {
    Place.CONF: {
        "AccountingStorageLoc": "22.05",
        "AccountingStoreJobComment": "22.05",
        "FastSchedule": "22.05",
        "FrontendName": "22.05",
        "SallocDefaultCommand": "22.05",
        "RoutePlugin": "23.11",
        "JobContainerType": "25.11",
    },
    Place.NODE: {},
    Place.PARTITION: {"ExclusiveUser": "26.05", "ExclusiveTopo": "26.05"},
}


@pytest.mark.slurm
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name.lower())
@pytest.mark.parametrize("release", ROOTS)
def test_a_release_takes_the_keys_that_its_library_reads(release: str, place: Place) -> None:
    refused = {key for key, until in READ_STILL[place].items() if release >= until}
    (library,) = ROOTS[release].glob(LIBRARY)
    assert taken(release, place) == read(library)[place].keys() - refused


@pytest.mark.slurm
@pytest.mark.parametrize("place", [Place.CONF, Place.PARTITION], ids=lambda place: place.name.lower())
@pytest.mark.parametrize("release", ROOTS)
def test_a_release_reads_each_value_as_the_type_that_the_table_says(release: str, place: Place) -> None:
    (library,) = ROOTS[release].glob(LIBRARY)
    found = {key: type_ for key, type_ in read(library)[place].items() if key in taken(release, place)}
    assert found == {key: value_types(place).get(key, Type.TEXT) for key in found} | retyped(release, place)


def retyped(release: str, place: Place) -> dict[str, Type]:
    """Keys of corral's own, whose lines a later release takes more than once."""
    several = ("Epilog", "EpilogSlurmctld", "Prolog", "PrologSlurmctld")
    return dict.fromkeys(several, Type.LINES) if place is Place.CONF and release >= "24.11" else {}


@cache
def read(library: Path) -> Mapping[Place, Mapping[str, Type]]:
    return keys_taken(library)


def taken(release: str, place: Place) -> set[str]:
    """The keys that the table says this release takes."""
    return {name for name in slurm_keys(place).values() if not misfits(parse_release(release), place, name)}


@pytest.mark.parametrize(
    ("release", "place", "count"),
    [
        ("22.05", Place.CONF, 220),
        ("26.05", Place.CONF, 234),
        ("22.05", Place.NODE, 24),
        ("26.05", Place.NODE, 29),
        ("22.05", Place.PARTITION, 42),
        ("26.05", Place.PARTITION, 45),
    ],
)
def test_a_release_takes_so_many_keys(release: str, place: Place, count: int) -> None:
    assert len(taken(release, place)) == count


def test_every_setting_that_came_or_went_has_a_source_and_says_what_happened() -> None:
    assert [row.text for row in slurm_changes() if not row.source.strip() or not row.change.strip()] == []


def test_no_setting_is_listed_twice() -> None:
    listed = [(row.text.lower(), row.place) for row in slurm_changes()]
    assert sorted(set(listed)) == sorted(listed)


def test_no_key_of_every_release_is_listed_as_changed() -> None:
    lasting = read_toml("slurm_conf.toml")["keys"]
    changed = {(row.place, row.key) for row in slurm_changes() if row.value is None}
    assert {(place, key) for place in PLACES for key in lasting[place.name.lower()]} & changed == set()


def test_every_setting_came_or_went_with_a_release_that_is_known() -> None:
    ends = [(row.since, row.until) for row in slurm_changes()]
    assert {end for pair in ends for end in pair if end} <= set(RELEASES)


def test_every_setting_differs_between_two_releases_or_from_all() -> None:
    assert [row.text for row in slurm_changes() if all(row.holds(release) for release in RELEASES)] == []


def test_a_key_is_the_same_in_any_case() -> None:
    assert slurm_keys(Place.CONF)["maxjobcount"] == "MaxJobCount"


def test_a_key_that_a_release_does_not_know_yet_is_named() -> None:
    assert texts("22.05", Place.CONF, "suspendexcstates", "DOWN") == ["SuspendExcStates: Slurm from 23.02"]


def test_a_key_that_a_release_knows_is_none_that_does_not_fit() -> None:
    assert texts("23.02", Place.CONF, "suspendexcstates", "DOWN") == []


def test_a_value_that_a_release_does_not_know_yet_is_named() -> None:
    found = texts("24.11", Place.CONF, "SchedulerParameters", "bf_window=5,requeue_delay=3")
    assert found == ["SchedulerParameters=requeue_delay: Slurm from 25.11"]


def test_a_key_of_a_partition_is_judged_as_one() -> None:
    found = texts("26.05", Place.PARTITION, "ExclusiveTopo", "YES")
    assert found == ["ExclusiveTopo: Slurm before 26.05 (new; then deprecated for Exclusive=TOPO)"]


def test_a_key_of_a_place_is_none_of_another() -> None:
    assert texts("22.05", Place.CONF, "PowerDownOnIdle", "YES") == []


def texts(release: str, place: Place, key: str, value: str) -> list[str]:
    number = parse_release(release)
    return [f"{row.text}: {span_beside(number, row)}" for row in misfits(number, place, key, value)]


@pytest.mark.parametrize(
    ("release", "holds"), [("23.11", False), ("24.05", True), ("25.11", True), ("26.05", False), ("27.11", False)]
)
def test_a_setting_holds_from_its_first_release_to_the_one_before_it_went(release: str, holds: bool) -> None:
    row = Setting(key="ExclusiveTopo", since=(24, 5), until=(26, 5), change="new", source="-", place=Place.PARTITION)
    assert row.holds(parse_release(release)) is holds


@pytest.mark.parametrize("version", ["", "23", "23.x", "v23.11", "\u0662\u0663.\u0661\u0661"])
def test_what_is_no_version_is_refused_with_a_sentence(version: str) -> None:
    with pytest.raises(ValueError, match="is no version of Slurm - write it as"):
        parse_release(version)


@pytest.mark.parametrize(("version", "text"), [("23.11.4", "23.11"), ("23.02", "23.02"), ("26.05.5-1", "26.05")])
def test_a_version_is_of_a_release(version: str, text: str) -> None:
    assert release_text(parse_release(version)) == text
