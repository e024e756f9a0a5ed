"""Zone ids, the same in every account, and zone names, specific to an account."""

import re

_ID = re.compile(r"[a-z0-9]+-az\d+")


def is_zone_id(zone: str) -> bool:
    """True for an id (use1-az4), False for a name (us-east-1a). EC2's calls take the two in different parameters."""
    return _ID.fullmatch(zone) is not None
