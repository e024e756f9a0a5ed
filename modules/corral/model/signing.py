"""The key that signs the manifests of a base's clusters."""

SIGNING_ALIASES = "alias/corral-signing/"
SIGNING_KEY_WAITS_DAYS = 7  # KMS's minimum: the next base has a new key, and nothing is lost
SIGNING_ALGORITHM = "RSASSA_PKCS1_V1_5_SHA_256"


def signing_alias(base: str) -> str:
    """Return the alias of the key that signs the manifests of this base's clusters."""
    return f"{SIGNING_ALIASES}{base}"
