"""Parts of S3 URLs."""


def bucket_of(url: str) -> str:
    """The bucket of `s3://bucket` or `s3://bucket/prefix`."""
    return url.removeprefix("s3://").split("/")[0]
