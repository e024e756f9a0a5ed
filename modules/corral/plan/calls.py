"""What is asked whether it is allowed: actions on things, and what conditions may want to know of the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """IAM's names of actions that one caller makes on each of these resources.

    `resources`: ARNs, or `*`. `context`: values of condition keys that AWS would see with the call.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...] = ("*",)
    context: Mapping[str, str] = field(default_factory=dict)
