"""What tells the SDKs in a machine where the box is, as the texts of two files. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address


def aws_config(region: str, router: IPv4Address) -> str:
    """The text of root's ~/.aws/config. `router`: the VPC's, where the box answers."""
    return f"[default]\nregion = {region}\nendpoint_url = {_endpoint(router)}\n"


def shell_profile(region: str, router: IPv4Address) -> str:
    """The text of a file in /etc/profile.d, for users other than root. `router`: the VPC's, where the box answers."""
    return f"export AWS_ENDPOINT_URL={_endpoint(router)} AWS_DEFAULT_REGION={region}\n"


def _endpoint(router: IPv4Address) -> str:
    return f"http://{router}"
