"""The k-ary fat tree: three tiers of equal switches with k ports each, nothing tapered.

Source: Al-Fares, Loukissas, Vahdat: A Scalable, Commodity Data Center Network Architecture, SIGCOMM 2008, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FatTree:
    """A whole tree of switches with this many ports, which is even. All hosts send at the rate of a port at once."""

    ports: int

    @property
    def hosts(self) -> int:
        """k^3/4."""
        return self.ports**3 // 4

    @property
    def leaves(self) -> int:
        """k^2/2; the second tier has as many."""
        return self.ports**2 // 2

    @property
    def cores(self) -> int:
        """(k/2)^2."""
        return (self.ports // 2) ** 2

    @property
    def switches(self) -> int:
        """5k^2/4."""
        return 2 * self.leaves + self.cores

    @property
    def bisection_links(self) -> int:
        """k^3/8: one for each host of a half."""
        return self.hosts // 2
