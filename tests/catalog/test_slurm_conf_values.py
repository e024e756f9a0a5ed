"""What slurmctld takes as values: the table by itself, and its plugins against those of the releases that are here."""

from __future__ import annotations

import pytest
from tools.slurm_matrix.roots import slurm_roots

from corral.catalog.loader.data_files import read_toml
from corral.catalog.slurm.conf_keys import ConfSection, slurm_keys
from corral.catalog.slurm.conf_values import Type, value_rules, value_types
from corral.catalog.slurm.releases import NEWEST, OLDEST
from corral.catalog.slurm.value_kinds import Numbers, Plugins, Shape, Switch, Times, ValueRule, Words

ROOTS = slurm_roots()
SECTIONS = (ConfSection.CONF, ConfSection.PARTITION)
DATA = read_toml("slurm_values.toml")
PLUGINS = {row["key"]: row["names"] for row in DATA["plugins"]}
KINDS = {name.partition("/")[0] for names in PLUGINS.values() for name in names if "/" in name}


@pytest.mark.slurm
@pytest.mark.parametrize("release", ROOTS)
def test_every_plugin_of_a_release_is_in_the_table(release: str) -> None:
    files = {path.stem for path in ROOTS[release].glob("usr/lib/*/slurm-wlm/*.so")}
    named = {name.replace("/", "_") for names in PLUGINS.values() for name in names}
    assert {file for file in files if any(file.startswith(f"{kind}_") for kind in KINDS)} <= named


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name.lower())
def test_every_key_with_a_type_is_one_of_slurm_conf(section: ConfSection) -> None:
    assert [key for key in value_types(section) if slurm_keys(section).get(key.lower()) != key] == []


def test_every_row_is_about_keys_of_its_section() -> None:
    rows = [row for kind, rows in DATA.items() if kind != "types" for row in rows]
    named = [
        (ConfSection[row.get("section", "conf").upper()], key)
        for row in rows
        for key in row.get("keys") or [row["key"]]
    ]
    assert [key for section, key in named if slurm_keys(section).get(key.lower()) != key] == []


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name.lower())
def test_no_key_has_two_types(section: ConfSection) -> None:
    listed = [key for keys in DATA["types"][section.name.lower()].values() for key in keys]
    assert len(value_types(section)) == len(listed)


def test_only_text_is_held_to_words_times_shapes_and_plugins() -> None:
    rows = [(row, kind) for kind in ("words", "times", "shapes", "settings", "plugins") for row in DATA[kind]]
    keys = [
        (ConfSection[row.get("section", "conf").upper()], key)
        for row, _ in rows
        for key in row.get("keys") or [row["key"]]
    ]
    checked = {Type.TEXT, Type.LINES}
    assert [key for section, key in keys if value_types(section).get(key, Type.TEXT) not in checked] == []


def only(section: ConfSection, key: str) -> ValueRule:
    (rule,) = value_rules(OLDEST, section, key)
    return rule


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("5", 5),
        ("+5", 5),
        ("0", 0),
        ("010", 8),
        ("0x10", 16),
        ("5K", 5120),
        ("5k", 5120),
        ("-4", -4),
        ("UNLIMITED", 4294967295),
        ("infinite", 4294967295),
        ("5M", None),
        ("5KB", None),
        ("08", None),
        ("0x", None),
        ("1.5", None),
        ("5,", None),
        ("\u0665", None),
        ("abc", None),
    ],
)
def test_a_number_is_read_as_slurm_reads_it(value: str, number: int | None) -> None:
    rule = only(ConfSection.CONF, "MinJobAge")
    assert isinstance(rule, Numbers) and rule.read(value) == number


def test_a_number_of_16_bits_has_no_k() -> None:
    rule = only(ConfSection.CONF, "KillWait")
    assert isinstance(rule, Numbers) and rule.read("5K") is None


@pytest.mark.parametrize(
    ("value", "minutes"),
    [
        ("0", 0),
        ("90", 90),
        ("0:01", 1),
        ("1:30", 2),
        ("1:00:00", 60),
        ("1-", 1440),
        ("1-12", 2160),
        ("1-12:30", 2190),
        ("1-12:00:00", 2160),
        ("5:", None),
        (":5", None),
        ("1::2", None),
        ("1:2:3:4", None),
        ("1-2-3", None),
        ("1d", None),
        ("+5", None),
        ("1.5", None),
    ],
)
def test_a_time_is_read_as_slurm_reads_it(value: str, minutes: int | None) -> None:
    rule = only(ConfSection.CONF, "PriorityMaxAge")
    assert isinstance(rule, Times) and rule.read(value) == minutes


@pytest.mark.parametrize(("value", "stray"), [("debug5", None), ("QUIET", None), ("9", None), ("debug6", "debug6")])
def test_a_debug_level_is_a_word_or_a_number(value: str, stray: str | None) -> None:
    rule = only(ConfSection.CONF, "SlurmdDebug")
    assert isinstance(rule, Words) and rule.stray(value) == stray


@pytest.mark.parametrize(("value", "clash"), [("SUSPEND,GANG", None), ("cancel,requeue", ("cancel", "requeue"))])
def test_of_the_ways_to_preempt_one_goes_with_gang(value: str, clash: tuple[str, str] | None) -> None:
    rule = only(ConfSection.PARTITION, "PreemptMode")
    assert isinstance(rule, Words) and rule.clash(value) == clash


@pytest.mark.parametrize(("value", "stray"), [("CORE,STACK", None), ("CORE,stack", "stack"), ("RLIMIT_CORE", None)])
def test_limits_of_resources_are_in_capitals(value: str, stray: str | None) -> None:
    rule = only(ConfSection.CONF, "PropagateResourceLimitsExcept")
    assert isinstance(rule, Words) and rule.stray(value) == stray


@pytest.mark.parametrize(
    ("value", "stray"),
    [("CPU=1.0,Mem=0.25G", None), ("cpu=1e3", None), ("CPU=1,GRES/gpu=2", "GRES/gpu=2"), ("Mem=1Q", "Mem=1Q")],
)
def test_a_weight_is_of_what_slurm_counts_without_slurmdbd(value: str, stray: str | None) -> None:
    rule = only(ConfSection.PARTITION, "TRESBillingWeights")
    assert isinstance(rule, Shape) and rule.stray(value) == stray


@pytest.mark.parametrize(
    ("key", "value", "stray"),
    [
        ("SchedulerType", "sched/backfill", None),
        ("SchedulerType", "backfill", "backfill"),
        ("JobSubmitPlugins", "require_timelimit,job_submit/logging", None),
        ("JobSubmitPlugins", "require_timelimit,mine", "mine"),
    ],
)
def test_a_plugin_goes_by_the_names_that_slurm_takes(key: str, value: str, stray: str | None) -> None:
    rule = only(ConfSection.CONF, key)
    assert isinstance(rule, Plugins) and rule.stray(value) == stray


@pytest.mark.parametrize(("value", "taken"), [("up", True), ("No", True), ("1", True), ("on", False), ("y", False)])
def test_yes_and_no_have_the_words_that_slurm_knows(value: str, taken: bool) -> None:
    rule = only(ConfSection.PARTITION, "LLN")
    assert isinstance(rule, Switch) and rule.takes(value) is taken


def test_a_key_in_any_case_has_the_same_rules() -> None:
    assert value_rules(NEWEST, ConfSection.CONF, "maxjobcount") == value_rules(NEWEST, ConfSection.CONF, "MaxJobCount")


def test_text_that_slurm_does_not_check_has_no_rules() -> None:
    assert value_rules(NEWEST, ConfSection.CONF, "MailDomain") == ()
