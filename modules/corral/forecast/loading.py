"""What a training run reads: bytes of tokens a second, and the servers that make tokens of text in time."""

from __future__ import annotations

from corral.catalog.storage import text_rates
from corral.spec.run import WHILE_TRAINING, LoaderSpec

_SECONDS_PER_HOUR = 3600
_SHORT_TOKENS = 2**16  # so many different ones fit two bytes


def token_bytes(vocabulary: int) -> int:
    """Bytes of a stored token: 2 where all of the vocabulary fit, else 4."""
    return 2 if vocabulary <= _SHORT_TOKENS else 4


def read_bytes_per_token(loader: LoaderSpec | None, vocabulary: int) -> float:
    """Bytes of a token where the run reads it: as declared, those of text where it reads that, else its own."""
    if loader and loader.bytes_per_token:
        return loader.bytes_per_token
    if loader and loader.tokenize == WHILE_TRAINING:
        return text_rates().bytes_per_token
    return token_bytes(vocabulary)


def text_bytes(tokens: float) -> float:
    """The size of the English text that so many tokens are made of."""
    return tokens * text_rates().bytes_per_token


def tokenizer_hours(tokens: float) -> float:
    """Hours in which one server makes so many tokens of English text."""
    return text_bytes(tokens) / text_rates().tokenizer_bytes_per_s / _SECONDS_PER_HOUR


def tokenizer_servers(tokens_per_s: float) -> float:
    """How many servers make tokens of English text as fast as a run reads them, where that is done while it trains."""
    rates = text_rates()
    return tokens_per_s * rates.bytes_per_token / rates.tokenizer_bytes_per_s
