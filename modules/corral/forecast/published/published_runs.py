"""Published training runs as jobs to forecast, with assumptions for missing cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from corral.forecast.published.csv_rows import REQUIRED, CsvRow, read_rows
from corral.forecast.published.published_network import assumed_network, is_aws, network_gbps, overlap_of
from corral.forecast.published.row_limits import assumed_batch, check_batch, check_parameters, check_row_precision
from corral.forecast.published.row_parser import parse_accelerator, parse_layout, parse_precision, parse_shape
from corral.forecast.training.fit import fits, job_memory, largest_micro_batch
from corral.forecast.training.interconnect import links_of
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Recompute, Sharding
from corral.forecast.training.optimizer_state import MIXED, PURE_BF16, StateBytes
from corral.forecast.training.speed import forecast_speed
from corral.spec.spec_errors import SpecError, SpecErrors

_MAX_BUBBLE = 0.3  # of the work; with a larger bubble, an interleaved schedule is assumed
_SURELY_TOO_LARGE = 1.5  # of an accelerator's memory; the memory formulas are less far off for layouts that ran
_MODES = {
    Recompute.NONE: "none",
    Recompute.OPERATORS: "operators, since it would not fit otherwise",
    Recompute.FULL: "all, since it would not fit otherwise",
}
_MAX_MICRO_BATCH = 16  # sequences; more than any published run of several gave to one accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """A published run. `reported`: tokens per second and accelerator, None if not published.

    `assumed`: a sentence for each missing cell.
    """

    run_id: str
    job: Job
    precision_text: str
    reported: float | None
    assumed: tuple[str, ...]

    @property
    def is_dense_16_bit(self) -> bool:
        """True for a dense model in fp16 or bf16."""
        return not self.job.shape.is_moe and self.job.precision.bits == 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRuns:
    """The valid runs of a table in order, and the errors of the other rows."""

    runs: tuple[PublishedRun, ...]
    mistakes: tuple[SpecError, ...]


def readable_runs(text: str, file: str) -> PublishedRuns:
    """The runs of a table like training_runs.csv that can be read. Raises SpecErrors if it is no such table."""
    rows = read_rows(text, file)
    runs = [_run(row) for row in rows]
    _check_names(rows)
    return PublishedRuns(
        runs=tuple(run for run, row in zip(runs, rows, strict=True) if run is not None and not row.errors),
        mistakes=tuple(error for row in rows for error in row.errors),
    )


def parse_runs(text: str, file: str) -> tuple[PublishedRun, ...]:
    """All runs of a table like training_runs.csv. Raises SpecErrors with every error of every row."""
    found = readable_runs(text, file)
    if found.mistakes:
        raise SpecErrors(found.mistakes)
    return found.runs


def _check_names(rows: tuple[CsvRow, ...]) -> None:
    seen: dict[str, int] = {}
    for row in rows:
        name = row.text("run_id")
        if name in seen:
            row.wrong("run_id", f"{name!r} is also in line {seen[name]}")
        seen.setdefault(name, row.line)


def _run(row: CsvRow) -> PublishedRun | None:
    for column in REQUIRED:
        if not row.text(column):
            row.wrong(column, "is empty; a run needs a value")
    shape, model, precision = parse_shape(row), parse_accelerator(row), parse_precision(row)
    layout, batch = parse_layout(row, model), row.number("global_batch_seqs")
    reported = row.number("tokens_per_s_per_accelerator")
    seq_len = row.whole("seq_len", 1)
    if row.errors or model is None or layout is None:
        return None
    if layout.cp > seq_len:
        row.wrong("cp", f"{layout.cp} parts of a sequence of {seq_len}")
    if layout.pp > shape.layers:
        row.wrong("pp", f"{layout.pp} stages of {shape.layers} layers")
    if shape.is_moe and layout.ep > min(shape.experts, layout.tp * layout.dp * layout.cp):
        most = min(shape.experts, int(layout.tp * layout.dp * layout.cp))
        row.wrong("ep", f"{layout.ep} for {shape.experts} experts on tp x cp x dp ranks", f"use at most {most}")
    check_row_precision(row, precision, model)
    check_parameters(row, shape)
    check_batch(row, layout, batch if _has_layout(row) else None)
    network = network_gbps(row, model)
    if row.errors:
        return None
    job = Job(
        shape=shape,
        layout=layout,
        machine=links_of(model, network),
        seq_len=seq_len,
        global_batch=batch or layout.dp * layout.micro_batch * 8 * layout.pp,
        precision=precision,
        fused_attention=row.text("precision").lower() != "fp16",
        efa=is_aws(row, model),
        expert_overlap=overlap_of(row),
    )
    settled, assumed = _recomputing(row, *_settled(row, job))
    return PublishedRun(
        run_id=row.text("run_id"),
        job=settled,
        precision_text=row.text("precision"),
        reported=reported,
        assumed=(*_unsaid(row, batch, settled), *assumed),
    )


def _has_layout(row: CsvRow) -> bool:
    return any(row.text(column) for column in ("tp", "pp", "cp", "dp"))


def _settled(row: CsvRow, job: Job) -> tuple[Job, tuple[str, ...]]:
    """The job with assumptions for what the row leaves open: the layout, the micro-batch, virtual stages."""
    if not _has_layout(row):
        best = _fastest(job)
        return best, (f"layout not published: TP {best.layout.tp:g} with full sharding, the fastest that fits",)
    if not row.text("virtual_stages") and (job.layout.pp - 1) / job.micro_batches > _MAX_BUBBLE:
        virtual = max(1, round(job.shape.layers / job.layout.pp))
        return replace(job, layout=replace(job.layout, virtual_stages=virtual)), ()
    if not row.text("micro_batch"):
        return _largest(job), ()
    if job.layout.pp > 1 and job.micro_batches < job.layout.pp:
        split = replace(job, layout=replace(job.layout, micro_batch=1))
        return split, ("fewer micro-batches than pipeline stages: the local batch is split into single sequences",)
    return job, ()


def _recomputing(row: CsvRow, job: Job, assumed: tuple[str, ...]) -> tuple[Job, tuple[str, ...]]:
    """The job with the least possible recomputation, if the row does not give it."""
    if row.text("recompute"):
        return job, assumed
    for mode in (Recompute.NONE, Recompute.OPERATORS, Recompute.FULL):
        tried = replace(job, layout=replace(job.layout, recompute=mode))
        if job_memory(tried, _state(tried)).total_gib <= _SURELY_TOO_LARGE * job.machine.accelerator.memory_gib:
            break
    return tried, (*assumed, f"recomputation not published: {_MODES[mode]}")


def _fastest(job: Job) -> Job:
    devices, domain = job.layout.accelerators, min(8, job.machine.accelerator.link_domain)
    degrees = [tp for tp in (1, 2, 4, 8) if tp <= domain and devices % tp == 0]
    layouts = [
        replace(job.layout, tp=tp, dp=int(devices // tp), sharding=Sharding.ZERO3, sequence_parallel=tp > 1)
        for tp in degrees
    ]
    jobs = [replace(job, layout=layout) for layout in layouts if layout.dp <= job.global_batch]
    fitting = [one for one in jobs if fits(one, _state(one))] or jobs or [job]
    return max(fitting, key=lambda one: forecast_speed(one).tokens_per_s)


def _largest(job: Job) -> Job:
    """The job with the largest micro-batch that fits; one sequence in a pipeline, whose bubble grows with more."""
    size = None if job.layout.pp > 1 else largest_micro_batch(job, _state(job), most=_MAX_MICRO_BATCH)
    return replace(job, layout=replace(job.layout, micro_batch=size or 1))


def _state(job: Job) -> StateBytes:
    return MIXED if job.precision.bits == 16 else PURE_BF16


def _unsaid(row: CsvRow, batch: float | None, job: Job) -> Iterator[str]:
    yield from assumed_network(row, job)
    if batch is None:
        yield f"global batch not published: {job.global_batch:g} sequences"
    yield from assumed_batch(job)
    if not row.text("micro_batch"):
        yield f"micro-batch not published: {job.layout.micro_batch:g}"
    if not row.text("virtual_stages") and job.layout.pp > 1:
        yield f"virtual stages not published: {job.layout.virtual_stages}"
    if not row.text("sharding") and _has_layout(row):
        yield "sharding not published: the optimizer"
    if not job.fused_attention:
        yield "fp16: software from before flash attention is assumed, which writes the attention scores"
    for lender in job.machine.accelerator.measured_on:
        yield f"measured shares of {lender} are used in place of missing ones"
