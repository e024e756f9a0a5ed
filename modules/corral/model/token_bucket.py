"""A token bucket, by which AWS limits requests. Pure.

The agent stays within EC2's buckets, and the box throttles by them.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """A bucket of `capacity` tokens that gains `refill_per_s` each second. It held `tokens` at the time `at`.

    Times are in seconds of any one clock. Negative tokens are already promised to callers that wait.
    """

    capacity: float
    refill_per_s: float
    tokens: float
    at: float = 0.0

    def spend(self, amount: float, now: float) -> tuple["TokenBucket", float]:
        """The bucket after spending this amount, and the seconds to wait until it is available."""
        tokens = self._tokens_at(now) - amount
        return replace(self, tokens=tokens, at=now), max(0.0, -tokens / self.refill_per_s)

    def take(self, amount: float, now: float) -> tuple["TokenBucket", bool]:
        """The bucket after taking this amount, and whether it had enough; if not, it loses none."""
        tokens = self._tokens_at(now)
        has_enough = tokens >= amount
        return replace(self, tokens=tokens - amount if has_enough else tokens, at=now), has_enough

    def _tokens_at(self, now: float) -> float:
        """The tokens at this time. A clock that runs backwards adds none."""
        return min(self.capacity, self.tokens + max(0.0, now - self.at) * self.refill_per_s)


def full_bucket(capacity: float, refill_per_s: float) -> TokenBucket:
    """A full bucket, which stays full until the first amount is spent."""
    return TokenBucket(capacity=capacity, refill_per_s=refill_per_s, tokens=capacity)
