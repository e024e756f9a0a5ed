"""Tables of published runs: parsing, errors of the table, and errors of the forecast."""

from __future__ import annotations

import csv
import io
import math
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.catalog.loader.data_files import read_text
from corral.forecast.published.published_runs import PublishedRun, parse_runs
from corral.forecast.published.speed_validation import (
    PublishedTable,
    SpeedComparison,
    compare_speeds,
    errors_of,
    grouped_errors,
    shipped_runs,
)
from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Recompute, Sharding
from corral.forecast.training.speed import accelerator_hours
from corral.spec.spec_errors import SpecErrors

TEXT = read_text("training_runs.csv")
HEADER = next(line for line in TEXT.splitlines() if not line.startswith("#"))
RUNS = {run.run_id: run for run in shipped_runs()}
COMPARISONS = compare_speeds(RUNS.values())


def row(run_id: str, /, **changes: str) -> str:
    """A table with only this row of the shipped one, with changes; the header is line 1, the row line 2."""
    cells = next(
        cells for cells in csv.DictReader(io.StringIO(TEXT[TEXT.index(HEADER) :])) if cells["run_id"] == run_id
    )
    out = io.StringIO()
    writer = csv.DictWriter(out, HEADER.split(","))
    writer.writeheader()
    writer.writerow({**cells, **changes})
    return out.getvalue()


def wrong(text: str) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        parse_runs(text, "runs.csv")
    return str(caught.value).splitlines()


def test_every_row_is_read() -> None:
    assert (len(RUNS), sum(run.reported is not None for run in RUNS.values())) == (103, 101)


def test_row_is_parsed_into_its_job() -> None:
    run = RUNS["nemo2407-gpt3-175b-128"]
    layout = run.job.layout
    assert (layout.tp, layout.pp, layout.dp, layout.virtual_stages, layout.sharding) == (4, 8, 4, 6, Sharding.ZERO1)
    assert (run.job.precision, run.job.micro_batches, run.reported) == (Precision.FP8, 64, 726)


def test_two_neuron_cores_are_one_accelerator() -> None:
    layout = RUNS["aws-trn1-llama3-8b"].job.layout
    assert (layout.tp, layout.dp, layout.accelerators) == (16, 32, 512)


def test_selective_recomputation_is_torchs_if_torch_shards() -> None:
    modes = [RUNS[name].job.layout.recompute for name in ("titan-8b-8-eager", "kor22-174.6b-selective")]
    assert modes == [Recompute.OPERATORS, Recompute.SELECTIVE]


def test_a_local_batch_is_split_for_a_pipeline() -> None:
    run = RUNS["titan-405b-512-1f1b"]
    assert (run.job.layout.micro_batch, run.job.micro_batches) == (1, 32)
    assert "the local batch is split" in " ".join(run.assumed)


def test_missing_layout_is_chosen() -> None:
    run = RUNS["llama1-65b-2048"]
    assert run.assumed[-1] == "layout not published: TP 1 with full sharding, the fastest that fits"


def test_mixture_uses_its_published_active_parameters() -> None:
    assert RUNS["aws-dsv3-b300-mb1"].job.shape.active_parameters == 37e9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": "3x"}, "layers (column 5): '3x' is not a whole number from 1 to 1,000,000,000"),
        ({"layers": ""}, "layers (column 5): is empty; a run needs a value"),
        ({"accelerator": "H100-8"}, "'H100-8' is not in the catalog - did you mean 'H100-80'"),
        ({"precision": "bf61"}, "precision (column 29): 'bf61' is unknown - did you mean 'bf16'"),
        (
            {"sharding": "zero9"},
            "sharding (column 26): 'zero9' is unknown - use one of not re-sharded, shard_grad_op, full_shard",
        ),
        ({"recompute": "ful"}, "recompute (column 30): 'ful' is unknown - did you mean 'full'?"),
        ({"dp": "5"}, "accelerators (column 18): 128, but tp x pp x cp x dp is 4 x 8 x 1 x 5 = 160"),
        ({"micro_batch": "-1"}, "micro_batch (column 27): '-1' is not a number above 0"),
        ({"micro_batch": "nan"}, "micro_batch (column 27): 'nan' is not a number above 0"),
        ({"gated_mlp": "maybe"}, "gated_mlp (column 8): 'maybe' is neither 0 nor 1"),
        ({"experts": "4", "top_k": "8"}, "top_k (column 14): 8 of 4 experts - use 1 to 4"),
        ({"global_batch_seqs": "2"}, "global_batch_seqs (column 28): 2 sequences for 4 data-parallel ranks"),
        ({"precision": "nvfp4"}, "precision (column 29): H100-80 has no fp4 - use fp32 or bf16 or fp16 or fp8"),
        (
            {"precision": "bf16", "accelerator": "V100-32"},
            "precision (column 29): V100-32 has no bf16 - use fp32 or fp16",
        ),
        (
            {"params_b": "700"},
            "params_b (column 3): 700 billion, but the shape of this row has 174 to 175, depending on what is counted -"
            " use a value within 50% of that, or correct layers, hidden, ffn_hidden, experts, vocab",
        ),
        ({"params_b": "inf"}, "params_b (column 3): 'inf' is not a number above 0 and up to 1,000,000,000"),
        ({"tokens_per_s_per_accelerator": "fast"}, "tokens_per_s_per_accelerator (column 32): 'fast' is not a number"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_error_of_a_cell_has_line_and_column(changes: dict[str, str], message: str) -> None:
    (line,) = wrong(row("nemo2407-gpt3-175b-128", **changes))
    assert line.startswith("runs.csv:2: ")
    assert message in line


def test_all_errors_are_reported_at_once() -> None:
    assert len(wrong(row("nemo2407-gpt3-175b-128", layers="x", heads="0", precision="odd"))) == 3


def test_duplicate_run_is_an_error() -> None:
    text = row("nemo2407-gpt3-175b-128")
    assert wrong(text + text.splitlines()[1] + "\n") == [
        "runs.csv:3: run_id (column 1): 'nemo2407-gpt3-175b-128' is also in line 2"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "runs.csv: is not a table: its first line must name the columns"),
        (HEADER, "runs.csv: has no runs, only column names"),
        (f"# note\n{HEADER}\na,b\n", "runs.csv:3: has 2 cells, the header has 40 columns"),
        (HEADER.replace("layers", "layer") + "\n", "runs.csv:1: layers: required column is missing"),
        (HEADER + ",tp\n", "runs.csv:1: tp: duplicate column"),
        (HEADER + '\n"a"b,\n', "runs.csv:2: is not a line of CSV: ',' expected after '\"'"),
    ],
    ids=["empty", "no run", "short line", "no such column", "twice", "no csv"],
)
def test_file_that_is_no_table_is_an_error(text: str, message: str) -> None:
    assert wrong(text) == [message]


def test_optional_columns_may_be_missing() -> None:
    columns = ("run_id", "layers", "hidden", "ffn_hidden", "heads", "vocab", "seq_len", "accelerator", "accelerators")
    text = f"{','.join(columns)}\nmine,32,4096,14336,32,128256,8192,H200,8\n"
    (run,) = parse_runs(text, "runs.csv")
    assert (run.reported, run.job.layout.dp, run.job.shape.head_dim) == (None, 8, 128)


def comparison(run_id: str) -> SpeedComparison:
    return next(one for one in COMPARISONS if one.run.run_id == run_id)


def test_median_error_is_below_twelve_percent() -> None:
    errors = errors_of("all", COMPARISONS)
    assert (errors.runs, errors.median < 0.12) == (101, True)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["dense, 16 bits", "dense, bf16", "dense, fewer bits"])
def test_median_error_of_dense_runs_is_below_eight_percent(name: str) -> None:
    (errors,) = [errors for errors in grouped_errors(COMPARISONS) if errors.name == name]
    assert errors.median is not None
    assert errors.median < 0.08


def test_no_run_is_off_by_more_than_forty_percent() -> None:
    assert [one.run.run_id for one in COMPARISONS if one.error is not None and abs(one.error) > 0.4] == []


@pytest.mark.parametrize("table", PublishedTable)
def test_errors_that_are_too_high_and_too_low_do_not_cancel_out(table: PublishedTable) -> None:
    comparisons = compare_speeds(shipped_runs(table))
    sizes = [abs(one.error) for one in comparisons if one.error is not None]
    found = errors_of("all", comparisons)
    assert (found.median, found.worst) == (median(sizes), max(sizes))


def test_errors_have_both_directions() -> None:
    above = sum(one.error > 0 for one in COMPARISONS if one.error is not None)
    assert 35 < above < 66


def test_slow_zero3_over_many_nodes_is_predicted() -> None:
    few, many = (comparison(f"nar21-t2-zero3-174.6b-{count}").predicted for count in (384, 1536))
    assert 2.5 < few / many < 4


def test_more_data_ranks_on_one_batch_lower_the_speed_as_published() -> None:
    few, many = (comparison(f"mgs24-megatron-{count}") for count in (256, 1024))
    assert many.predicted / few.predicted == pytest.approx(129.6 / 153.5, abs=0.03)


def test_run_without_a_reported_speed_has_no_error() -> None:
    assert [one.run.run_id for one in COMPARISONS if one.error is None] == ["opt-175b-992", "aws-p4d-fsdp-175b-128"]


def test_forecast_of_a_run_does_not_depend_on_what_it_reported() -> None:
    quick, slow = (
        compare_speeds(parse_runs(row("nemo2407-gpt3-175b-128", tokens_per_s_per_accelerator=tokens), "runs.csv"))[0]
        for tokens in ("1", "1000")
    )
    assert quick.predicted == slow.predicted == comparison("nemo2407-gpt3-175b-128").predicted


def test_published_runs_are_frozen() -> None:
    assert PublishedRun.__dataclass_params__.frozen  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("run_id", "tokens", "hours"),
    [
        ("llama3-405b-16384-8192", 15.6e12, 30.84e6),  # model card
        ("llama1-65b-2048", 1.4e12, 1_022_362),  # arXiv:2302.13971
        ("bloom-176b-384", 366e9, 1_082_990),  # arXiv:2211.05100
    ],
)
def test_published_hours_are_predicted_within_15_percent(run_id: str, tokens: float, hours: float) -> None:
    # 0.917: effective training time of 1,024 accelerators by RSC's figures (arXiv:2410.21680)
    assert accelerator_hours(comparison(run_id).speed, tokens, effective=0.917) == pytest.approx(hours, rel=0.15)


@settings(max_examples=150, deadline=None)
@given(
    column=st.sampled_from(HEADER.split(",")),
    value=st.one_of(
        st.text(max_size=12),
        st.sampled_from(["0", "-1", "1", "7", "999999999", "1" * 5000, "1e9", "nan", "inf", "1e-300", "0.5", "9" * 10]),
    ),
    run_id=st.sampled_from(sorted(RUNS)),
)
def test_any_cell_text_is_forecast_or_an_error(column: str, value: str, run_id: str) -> None:
    try:
        runs = parse_runs(row(run_id, **{column: value}), "runs.csv")
    except SpecErrors as errors:
        assert errors.errors
    else:
        assert all(one.predicted > 0 and math.isfinite(one.predicted) for one in compare_speeds(runs))


def test_ec2_machines_have_their_own_network() -> None:
    changes = {"nic_gbps_per_accelerator": "", "system": "p4d.24xlarge"}
    (run,) = parse_runs(row("mpt-7b-A100-40-8-2048", **changes), "runs.csv")
    assert (run.job.machine.network_gbps, run.job.efa) == (50, True)


def source(one: SpeedComparison) -> str:
    """The publisher of the run, from its id."""
    return one.run.run_id.split("-")[0].rstrip("0123456789.")


def test_runs_of_a_held_out_source_are_predicted_within_twelve_percent() -> None:
    # training_share, the only constant of an accelerator, is fitted to the runs of all other sources
    known = [(one, math.log1p(one.error)) for one in COMPARISONS if one.error is not None]
    sizes = []
    for one, off in known:
        model, width = one.run.job.machine.accelerator.name, one.run.job.precision.bits
        others = [
            other_off
            for other, other_off in known
            if other.run.job.machine.accelerator.name == model
            and other.run.job.precision.bits == width
            and source(other) != source(one)
        ]
        sizes += [abs(math.expm1(off - median(others)))] if others else []
    assert len(sizes) > 70
    assert median(sizes) < 0.12


@pytest.mark.parametrize(
    ("table", "median", "dense_bf16"),
    [(PublishedTable.FIRST, 0.04, 0.055), (PublishedTable.SECOND, 0.06, 0.06), (PublishedTable.HELD_OUT, 0.08, 0.08)],
)
def test_median_errors_are_at_most_the_documented_ones(table: PublishedTable, median: float, dense_bf16: float) -> None:
    every, _, bf16, *_ = grouped_errors(compare_speeds(shipped_runs(table)))
    assert every.median is not None
    assert bf16.median is not None
    assert (every.median <= median, bf16.median <= dense_bf16) == (True, True)


def test_no_run_is_in_two_tables() -> None:
    names = [run.run_id for table in PublishedTable for run in shipped_runs(table)]
    assert (len(names), len(set(names))) == (222, 222)


def test_missing_recomputation_is_the_least_that_fits() -> None:
    (run,) = [run for run in shipped_runs(PublishedTable.SECOND) if run.run_id == "maxtext-llama3.1-405b-v6e-256"]
    assert (run.job.layout.recompute, run.assumed[-1]) == (
        Recompute.FULL,
        "recomputation not published: all, since it would not fit otherwise",
    )


def test_overlap_is_read_from_the_row() -> None:
    states = [
        RUNS[name].job.expert_overlap
        for name in ("aws-qwen30b-p5-ep32-on", "aws-qwen30b-p5-ep16-off", "palm-540b-6144")
    ]
    assert states == [True, False, None]


EFA_ROW = "aws-qwen30b-p5-ep32-mb1"
LIKE_INFINIBAND = (
    "neither system nor note names an EC2 type, AWS or EFA: experts exchange over a network like InfiniBand,"
    " where a token goes to a node once"
)


def network_sentences(run: PublishedRun) -> list[str]:
    words = ("network", "exchange")
    return [sentence for sentence in run.assumed if any(word in sentence for word in words)]


@pytest.mark.parametrize(
    "system",
    ["p5.48xlarge", "p5", "AWS p5.48xlarge", "8 x p5.48xlarge", "8xp5.48xlarge", "P5.48xlarge", "ml.p5.48xlarge (EKS)"],
)
def test_instance_type_is_found_anywhere_in_system_ignoring_case(system: str) -> None:
    (run,) = parse_runs(row(EFA_ROW, system=system, note="overlap off"), "runs.csv")
    assert (run.job, network_sentences(run)) == (RUNS[EFA_ROW].job, [])


@pytest.mark.parametrize("system", ["", "DGX H100", "p55.48xlarge", "hp5", "SuperPOD without EFA"])
def test_unnamed_network_is_listed_as_assumed(system: str) -> None:
    (run,) = parse_runs(row(EFA_ROW, system=system, note="overlap off"), "runs.csv")
    assert (run.job.efa, network_sentences(run)) == (False, [LIKE_INFINIBAND])


@pytest.mark.parametrize(("comment", "efa"), [("all-to-all over EFA", True), ("not over EFA", False)])
def test_efa_is_read_from_the_row(comment: str, *, efa: bool) -> None:
    (run,) = parse_runs(row(EFA_ROW, system="", note=comment), "runs.csv")
    assert run.job.efa is efa


def test_accelerators_of_aws_only_use_efa() -> None:
    (run,) = parse_runs(row("aws-trn1-llama3-8b", system="", note=""), "runs.csv")
    assert (run.job.efa, run.assumed[0]) == (
        True,
        "network not published: that of trn1.32xlarge, 50 Gb/s per accelerator",
    )


def test_missing_network_rate_is_that_of_a_type_with_these_accelerators() -> None:
    (run,) = parse_runs(row("mpt-7b-A100-40-8-2048", system="AWS", nic_gbps_per_accelerator=""), "runs.csv")
    assert run.assumed[0] == "network not published: that of p4d.24xlarge, 50 Gb/s per accelerator"


def test_unnamed_overlap_is_listed_as_assumed() -> None:
    (run,) = parse_runs(row(EFA_ROW, note="dense overlap on, MoE overlap off"), "runs.csv")
    assert network_sentences(run) == [
        "note has neither 'overlap on' nor 'overlap off': 20% of the exchange among experts is hidden"
    ]


def test_experts_in_one_link_domain_need_no_assumed_network() -> None:
    (run,) = parse_runs(row(EFA_ROW, system="", note="", ep="8"), "runs.csv")
    assert network_sentences(run) == []


def test_uneven_batch_is_predicted_by_its_slowest_rank() -> None:
    assert RUNS["opt-175b-992"].assumed[0] == (
        "1,024 sequences do not divide among 124 data-parallel ranks: a step takes as long as 16 of them on one"
    )


def test_smaller_last_micro_batch_counts_as_full() -> None:
    (run,) = parse_runs(row("nemo2407-gpt3-175b-128", micro_batch="3"), "runs.csv")
    assert (
        "64 sequences per data rank are not a multiple of the micro-batch of 3: the last one counts as full"
        in run.assumed
    )


@pytest.mark.parametrize("count", ["30.5", "29.9", "3.3", "2.7"])
def test_parameter_count_of_a_mixture_may_be_total_or_active(count: str) -> None:
    (run,) = parse_runs(row(EFA_ROW, params_b=count), "runs.csv")
    assert run.reported == 603.7


def test_active_parameters_beyond_the_shape_are_an_error() -> None:
    (line,) = wrong(row(EFA_ROW, active_params_b="330"))
    assert line.startswith(
        "runs.csv:2: active_params_b (column 4): 330 billion, but the shape of this row has 2.73 to 3"
    )


@pytest.mark.parametrize(
    ("cells", "means"),
    [
        ({"sharding": "FSDP SHARD_GRAD_OP"}, Sharding.ZERO2),
        ({"sharding": "FULL_SHARD"}, Sharding.ZERO3),
        ({"sharding": "DeepSpeed ZeRO Stage 3"}, Sharding.DEEPSPEED_ZERO3),
    ],
    ids=lambda value: value["sharding"] if isinstance(value, dict) else "",
)
def test_framework_terms_select_their_sharding(cells: dict[str, str], means: Sharding) -> None:
    (run,) = parse_runs(row("nemo2407-gpt3-175b-128", **cells), "runs.csv")
    assert run.job.layout.sharding is means


def test_placeholder_cells_are_empty() -> None:
    (run,) = parse_runs(row("nemo2407-gpt3-175b-128", virtual_stages="n/a", cp="-"), "runs.csv")
    assert run.job.layout.cp == 1


def test_numbers_may_have_thousands_separators() -> None:
    (run,) = parse_runs(row("nemo2407-gpt3-175b-128", hidden="12,288"), "runs.csv")
    assert run.job.shape.hidden == 12288


def test_accelerators_have_aliases() -> None:
    (run,) = parse_runs(row("nemo2407-gpt3-175b-128", accelerator="NVIDIA H100 80GB HBM3"), "runs.csv")
    assert run.job.machine.accelerator.name == "H100-80"
