"""What a training run reads: bytes of tokens a second, and the servers that make tokens of text in time."""

from __future__ import annotations

from corral.catalog.storage import text_rates

_SHORT_TOKENS = 2**16  # so many different ones fit two bytes


def token_bytes(vocabulary: int) -> int:
    """Bytes of a stored token: 2 where all of the vocabulary fit, else 4."""
    return 2 if vocabulary <= _SHORT_TOKENS else 4


def loader_bytes_per_s(tokens_per_s: float, vocabulary: int, *, readers_per_token: int = 1) -> float:
    """What data loaders read for a run of so many tokens a second, of data that are tokens already.

    `readers_per_token`: ranks that read the same sample, as those of a tensor- or pipeline-parallel group may.
    """
    return tokens_per_s * token_bytes(vocabulary) * readers_per_token


def corpus_bytes(tokens: float, vocabulary: int) -> float:
    """The size of a corpus of so many tokens."""
    return tokens * token_bytes(vocabulary)


def tokenizer_servers(tokens_per_s: float) -> float:
    """How many servers make tokens of English text as fast as a run reads them, where that is done while it trains."""
    rates = text_rates()
    return tokens_per_s * rates.bytes_per_token / rates.tokenizer_bytes_per_s
