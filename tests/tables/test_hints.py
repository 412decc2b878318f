"""What to check goes by what Java, or a Python worker, complains of."""

from __future__ import annotations

import pytest

from rookery.tables.iceberg.jvm import failure_hint


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ('UnsupportedFileSystemException: No FileSystem for scheme "s3"', "lacks Iceberg's bundle"),
        ("ClassNotFoundException: org.apache.iceberg.aws.s3.S3FileIO", "lacks Iceberg's bundle"),
        ("NoClassDefFoundError: software/amazon/awssdk/core/Sdk", "lacks Iceberg's bundle"),
        ("NoSuchTableException: Table does not exist: db.t", "dropped"),
        ("NotFoundException: Failed to open input stream for file: /t/data/1.parquet", "dropped"),
        ("NoSuchKeyException: The specified key does not exist.", "dropped"),
        ("s3://b/t/data/1.parquet: no such file", "dropped"),
        ("S3Exception: Access Denied (Service: S3, Status Code: 403)", "reachable"),
        ("NoSuchBucketException: The specified bucket does not exist", "reachable"),
        ("ConnectException: Connection refused", "reachable"),
        ("SdkClientException: Unable to load credentials", "reachable"),
        ("NotAuthorizedException: Not authorized: expired token", "reachable"),
    ],
)
def test_hint(reason: str, hint: str) -> None:
    assert hint in failure_hint(reason)
