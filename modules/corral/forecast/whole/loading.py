"""How a declared run reads its data, and what making tokens of text takes and costs."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.storage import text_rates
from corral.forecast.loading import read_bytes_per_token, text_bytes, tokenizer_hours, tokenizer_servers
from corral.forecast.money import Usd
from corral.forecast.prices import PriceList
from corral.forecast.training.outcome import RunForecast
from corral.spec.run import BEFORE, WHILE_TRAINING, RunSpec

_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizing:
    """Text that is made into tokens, by machines of the type `server`. `servers`: how many keep up with the training.

    `hours`: of one server for all of the text. `usd`: what they cost where it is done before the run; None where no
    price is known. While it trains the nodes' own processors do it, which are paid for: `usd` is zero.
    """

    when: str
    text_bytes: float
    server: str
    servers: float
    hours: float
    usd: Usd | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Bytes and files a second that all loaders read together, and tokens a second that each of their workers makes."""

    place: str
    bytes_per_s: float
    files_per_s: float
    workers: int
    tokens_per_s_per_worker: float
    tokenizing: Tokenizing | None


def loading_of(run: RunForecast, prices: PriceList) -> Loading | None:
    """None for a run whose file says nothing of its loader."""
    loader = run.run.loader
    if loader is None:
        return None
    rate = run.speed.tokens_per_s * read_bytes_per_token(loader, run.job.shape.vocabulary)
    workers = loader.workers * run.run.accelerators or run.run.accelerators  # with 0 the training process loads
    return Loading(
        place=loader.source or "a file system that is not named",
        bytes_per_s=rate,
        files_per_s=rate / (loader.file_mib * _MIB),
        workers=workers,
        tokens_per_s_per_worker=run.speed.tokens_per_s / workers,
        tokenizing=tokenizing_of(run.run, run.speed.tokens_per_s, prices),
    )


def tokenizing_of(run: RunSpec, tokens_per_s: float, prices: PriceList) -> Tokenizing | None:
    """None where the data are tokens already."""
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
