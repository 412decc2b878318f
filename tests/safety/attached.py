"""Processes that share the JVM of whoever starts them, since starting one is what takes the time."""

from __future__ import annotations

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession


def gateway_of(spark: SparkSession) -> dict[str, str]:
    """What the environment of such a process has to say."""
    gateway = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    return {
        "PYSPARK_GATEWAY_PORT": str(gateway.port),
        "PYSPARK_GATEWAY_SECRET": str(gateway.auth_token),
    }


def attached() -> SparkSession:
    """The session of the JVM whose port is in the environment."""
    gateway = launch_gateway()
    jvm = gateway.jvm
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext(running)
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context)
