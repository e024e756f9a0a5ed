"""How a declared run reads its data, and the duration and cost of tokenization."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.aws.storage import text_rates
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.price_source import PriceList
from corral.forecast.data_loading import read_bytes_per_token, text_bytes, tokenizer_hours, tokenizer_servers
from corral.forecast.training.run_forecast import RunForecast
from corral.spec.models.run import BEFORE, WHILE_TRAINING, RunSpec

_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizing:
    """The tokenization of text on machines of type `server`. `servers`: how many keep up with the training.

    `hours`: of one server for the whole text. `usd`: the cost if done before the run, None if unknown; 0 during
    training, when the nodes' own processors do it.
    """

    when: str
    text_bytes: float
    server: str
    servers: float
    hours: float
    usd: Usd | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReading:
    """The rates of all data loaders together, and tokens per second of each of their workers."""

    storage: str
    bytes_per_s: float
    files_per_s: float
    workers: int
    tokens_per_s_per_worker: float
    tokenizing: Tokenizing | None


def data_reading(run: RunForecast, prices: PriceList) -> DataReading | None:
    """How the run reads its data; None if its file declares no loader."""
    loader = run.run.loader
    if loader is None:
        return None
    rate = run.speed.tokens_per_s * read_bytes_per_token(loader, run.job.shape.vocabulary)
    workers = loader.workers * run.run.accelerators or run.run.accelerators  # with 0 workers the training process loads
    return DataReading(
        storage=loader.source or "an unnamed file system",
        bytes_per_s=rate,
        files_per_s=rate / (loader.file_mib * _MIB),
        workers=workers,
        tokens_per_s_per_worker=run.speed.tokens_per_s / workers,
        tokenizing=tokenizing_of(run.run, run.speed.tokens_per_s, prices),
    )


def tokenizing_of(run: RunSpec, tokens_per_s: float, prices: PriceList) -> Tokenizing | None:
    """The tokenization; None if the data are already tokens."""
    when, rates = run.loader.tokenize if run.loader else None, text_rates()
    if when not in (BEFORE, WHILE_TRAINING):
        return None
    hours = tokenizer_hours(run.tokens)
    return Tokenizing(
        when=when,
        text_bytes=text_bytes(run.tokens),
        server=rates.server,
        servers=tokenizer_servers(tokens_per_s),
        hours=hours,
        usd=_usd(rates.server, hours, prices) if when == BEFORE else Usd.exact(0.0),
        source=rates.source,
    )


def _usd(server: str, hours: float, prices: PriceList) -> Usd | None:
    price = prices.instance(server)
    return None if price is None or price.on_demand is None else Usd.exact(price.on_demand * hours)
