"""Accelerators: what is known of them, and that it agrees with the machines that have them."""

from __future__ import annotations

import pytest

from corral.catalog.accelerators.accelerators import accelerators, find_accelerator, find_not_on_aws, published_runs
from corral.catalog.accelerators.measured_collectives import find_curve, measured_curves
from corral.catalog.aws.instance_types import find_instance_type, instance_types
from corral.catalog.aws.instance_types_by_accelerator import accelerator_of, types_with
from corral.catalog.loader.suggestions import UnknownName

ON_AWS = [(family, model) for model in accelerators().values() for family in model.on_aws]


def machines(family: str) -> list[str]:
    return [name for name in instance_types() if name.partition(".")[0] == family]


def test_those_that_aws_rents_are_marked() -> None:
    aside = [model.name for model in accelerators().values() if not model.provisionable]
    assert aside == [
        "H100-96 HBM2e 500W",
        "H100-NVL",
        "H800",
        "A800",
        "GB300",
        "Gaudi2",
        "Gaudi3",
        "TPUv4",
        "TPUv5p",
        "TPUv6e",
        "TPUv5e",
        "MI300X",
        "CS-2",
        "CS-3",
        "Bow-IPU",
    ]


@pytest.mark.parametrize(("family", "model"), ON_AWS, ids=lambda value: getattr(value, "name", value))
def test_memory_is_that_of_the_machines(family: str, model: object) -> None:
    sizes = {
        round(machine.accelerator.memory_mib / 1024)
        for name in machines(family)
        if (machine := instance_types()[name]).accelerator
    }
    assert sizes <= {round(model.memory_gib)}  # type: ignore[attr-defined]


def test_name_may_be_written_otherwise() -> None:
    assert [find_accelerator(name).name for name in ("h100-80", "TPU v4", "Gaudi 2")] == ["H100-80", "TPUv4", "Gaudi2"]


def test_unknown_name_has_a_hint() -> None:
    with pytest.raises(UnknownName, match="'H100-8' is not in the catalog - did you mean 'H100-80'"):
        find_accelerator("H100-8")


@pytest.mark.parametrize(
    ("name", "bits", "tflops"),
    [("A100-80", 16, 312), ("A100-80", 8, 312), ("H100-80", 8, 1979), ("H100-80", 4, 1979), ("B200", 4, 9000)],
)
def test_narrow_numbers_run_in_the_next_wider_ones(name: str, bits: int, tflops: float) -> None:
    assert find_accelerator(name).peak_flops(bits) == tflops * 1e12


def test_measurements_are_borrowed_by_name() -> None:
    gb200 = find_accelerator("GB200")
    assert (gb200.achievable[16], gb200.achievable[8], gb200.measured_on) == (0.729, 0.763, ("B200",))


def test_link_is_counted_one_way() -> None:
    assert find_accelerator("H100-80").link_one_way_bytes_per_s == 450e9


def test_shares_are_shares() -> None:
    wrong = [
        model.name
        for model in accelerators().values()
        for share in (*model.achievable.values(), *model.training_share.values())
        if not 0 < share <= 1
    ]
    assert wrong == []


def test_runs_are_counted_by_accelerator() -> None:
    assert [published_runs(name) for name in ("A100-80", "Trainium1", "CS-3")] == [57, 2, 0]


def test_a_share_of_its_own_is_calibrated() -> None:
    assert [find_accelerator(name).calibrated for name in ("A100-40", "L40S")] == [True, False]


def test_machines_have_the_accelerator_of_their_family() -> None:
    found = [accelerator_of(find_instance_type(name)) for name in ("p4d.24xlarge", "p5en.48xlarge", "trn1n.32xlarge")]
    assert [model and model.name for model in found] == ["A100-40", "H200", "Trainium1"]


def test_machines_of_which_nothing_is_known_have_none() -> None:
    assert [accelerator_of(find_instance_type(name)) for name in ("g6.xlarge", "m7i.large")] == [None, None]


def test_curves_are_sorted_by_size() -> None:
    assert [curve.fabric for curve in measured_curves().values() if list(curve.points) != sorted(curve.points)] == []


def test_machines_without_a_curve_have_that_of_their_like() -> None:
    assert [find_curve(name).fabric for name in ("p4d.24xlarge", "p5en.48xlarge")] == ["p4de.24xlarge", "p5.48xlarge"]


def test_where_no_curve_is_near_there_is_none() -> None:
    with pytest.raises(UnknownName):
        find_curve("g5.48xlarge")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("tpu-v5p", "TPUv5p"),
        ("TPU", "TPUv4"),
        ("ct5lp-hightpu-4t", "TPUv6e"),
        ("trillium", "TPUv6e"),
        ("gaudi3.24xlarge", "Gaudi3"),
        ("cerebras", "CS-3"),
        ("cs2", "CS-2"),
        ("ipu", "Bow-IPU"),
    ],
)
def test_a_word_for_what_aws_does_not_rent_is_known(word: str, name: str) -> None:
    found = find_not_on_aws(word)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("word", ["p5.48xlarge", "h100", "trn2", "g6e", "b200", "cs", ""])
def test_other_words_mean_none_of_them(word: str) -> None:
    assert find_not_on_aws(word) is None


def test_trainium_is_compared_and_rented() -> None:
    assert types_with(find_accelerator("Trainium2")) == ("trn2.3xlarge", "trn2.48xlarge")


def test_no_machine_has_a_tpu() -> None:
    assert types_with(find_accelerator("TPUv5p")) == ()


@pytest.mark.parametrize(
    ("name", "memory", "rate", "peak", "link"),
    [
        ("TPUv4", 32, 1200, 275, 600),
        ("TPUv5e", 16, 819, 197, 400),
        ("TPUv5p", 95, 2765, 459, 1200),
        ("TPUv6e", 32, 1638, 918, 800),
        ("Gaudi2", 96, 2460, 432, 525),
        ("Gaudi3", 128, 3670, 1835, 1050),
        ("Trainium1", 32, 820, 191, 384),
        ("Trainium2", 96, 2900, 667, 1280),
    ],
)
def test_figures_are_the_published_ones(name: str, memory: float, rate: float, peak: float, link: float) -> None:
    found = find_accelerator(name)
    figures = (found.memory_gib, found.hbm_gb_per_s, found.peak_tflops[16], found.link_gb_per_s)
    assert figures == (memory, rate, peak, link)


def test_every_model_states_where_its_figures_are_from() -> None:
    assert [model.name for model in accelerators().values() if not model.source or not model.vendor] == []


def test_what_is_assumed_is_a_figure_of_the_model() -> None:
    named = {figure for model in accelerators().values() for figure in model.assumed}
    assert named <= {"memory_gib", "hbm_gb_per_s", "peak_tflops", "link_gb_per_s", "network_gbps", "tdp_w"}


def test_what_a_caveat_calls_unverified_is_assumed() -> None:
    assert [
        model.name
        for model in accelerators().values()
        if "UNVERIFIED" in f"{model.caveat}{model.source}" and not model.assumed
    ] == []
