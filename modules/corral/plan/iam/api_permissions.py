"""API calls to check with IAM: actions, their resources, and the values of condition keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """IAM actions that one caller performs on each of these resources.

    `resources`: ARNs, or `*`. `context`: values of condition keys in the request.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...] = ("*",)
    context: Mapping[str, str] = field(default_factory=dict)
