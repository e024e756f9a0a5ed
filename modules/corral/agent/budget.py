"""How much an account may ask for at once, and how fast that comes back: a token bucket. Pure."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`most` at once, `per_s` more each second. `spent` of it at the moment `at`."""

    most: float
    per_s: float
    spent: float = 0.0
    at: float = 0.0

    def spend(self, amount: float, now: float) -> tuple["Budget", float]:
        """The budget after spending this, and how many seconds must pass before it is there."""
        spent = max(0.0, self.spent - max(0.0, now - self.at) * self.per_s) + amount
        wait_s = max(0.0, (spent - self.most) / self.per_s)
        return replace(self, spent=spent, at=now), wait_s
