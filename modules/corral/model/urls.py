"""What the addresses of others' things consist of, and how the box is asked for a certain one."""

WISHED_ID = "corral-box:id"  # a tag: in the box, what an ordinary call makes gets the id that it names


def bucket_of(url: str) -> str:
    """The bucket of `s3://bucket` or `s3://bucket/prefix`."""
    return url.removeprefix("s3://").split("/")[0]
