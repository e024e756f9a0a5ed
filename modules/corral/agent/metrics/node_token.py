"""The token by which nodes know their cluster's Prometheus.

It follows from the munge key, which head and nodes have and nobody else: no further secret needs a way to them, and it
leads back to no key.
"""

import hashlib
import hmac
from pathlib import Path

_MUNGE_KEY = "etc/munge/munge.key"
_PURPOSE = b"corral: metrics of nodes"


def node_token(root: Path = Path("/")) -> str:
    """The token of this machine's cluster. Raises OSError before the machine has the munge key."""
    key = (root / _MUNGE_KEY).read_bytes()
    return hmac.new(key, _PURPOSE, hashlib.sha256).hexdigest()
