"""Calling Java code that is compiled in the JVM of a session."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_compiling = Lock()
_compiled: WeakKeyDictionary[Any, dict[str, dict[str, Any]]] = (
    WeakKeyDictionary()
)  # methods, by gateway and class


def call_compiled(spark: SparkSession, class_name: str, source: str, name: str, *arguments: Any) -> Any:
    """Call a static method of a class compiled where it runs; py4j cannot name it, so by reflection."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    classes = _compiled.setdefault(gateway, {})
    with _compiling:
        if class_name not in classes:  # once per JVM, with the compiler that Spark includes
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
            compiler.cook(source)
            loaded = compiler.getClassLoader().loadClass(class_name)
            classes[class_name] = {method.getName(): method for method in loaded.getDeclaredMethods()}
    packed = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for position, argument in enumerate(arguments):
        packed[position] = argument
    return classes[class_name][name].invoke(None, packed)
