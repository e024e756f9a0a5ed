"""Which resource types an action has, and their ARNs, as AWS's Service Authorization Reference lists them.

data/service_reference.json holds the services whose resources the box finds by name; tools/service_reference.py writes
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from corral.box.account import ACCOUNT, PARTITION
from corral.model.partitions import partition_of

_VARIABLE = re.compile(r"\$\{\w+\}")


def is_listed(prefix: str) -> bool:
    """True if the file has the service with this prefix of IAM."""
    return prefix in _services()


def resource_types(prefix: str, action: str) -> tuple[str, ...]:
    """The resource types of an action; none if it is about everything.

    Raises NotImplementedError for an action that the reference does not have.
    """
    found = _services()[prefix]["actions"].get(action)
    if found is None:
        raise NotImplementedError(f"the action {prefix}:{action} in a policy")
    return tuple(found)


def resource_arn(prefix: str, kind: str, region: str, *names: str, account: str = ACCOUNT) -> str:
    """The ARN of a resource. `names`: the values of the variables that are not the account's or the region's."""
    template = str(_services()[prefix]["arns"][kind])
    partition = partition_of(region).name if "${Region}" in template else PARTITION
    for variable, value in (("Partition", partition), ("Region", region), ("Account", account)):
        template = template.replace(f"${{{variable}}}", value)
    values = iter(names)
    return _VARIABLE.sub(lambda _: next(values), template)


@cache
def _services() -> Mapping[str, Any]:
    text = files("corral.box.access").joinpath("data", "service_reference.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)["services"]
    return found
