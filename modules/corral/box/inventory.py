"""Everything that exists in the cloud, by service and kind. Placeholder for the walk."""

def take() -> dict[str, list[str]]:
    return {}
