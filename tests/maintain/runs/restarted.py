"""Kill the JVM of a site's session, and use the site again: python -m tests.maintain.runs.restarted TABLE."""

from __future__ import annotations

import os
import signal
import sys

from pyspark import SparkContext

import rookery
from rookery.api.watch import LakeSite


def main(name: str) -> None:
    said: list[object] = []
    lake = rookery.connect("lake")
    site = LakeSite(lake, spark=lake.spark)
    session = site._spark()
    said.append(site.has_spark)
    jvm = session._jvm
    assert jvm is not None
    os.kill(jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
    SparkContext._gateway.proc.wait()
    said.append(site.has_spark)
    again = site._spark()
    said.append(site.has_spark)
    said.append(again.table(name).count())
    again.stop()
    sys.stdout.write(" ".join(map(str, said)))


if __name__ == "__main__":
    main(sys.argv[1])
