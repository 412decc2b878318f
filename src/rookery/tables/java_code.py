"""Calling Java code that is compiled in the JVM of a session."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources.abc import Traversable
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
            # Not setTargetVersion(8), for static methods of interfaces: the code that it makes is wrong.
            compiler.cook(source)
            loaded = compiler.getClassLoader().loadClass(class_name)
            classes[class_name] = {method.getName(): method for method in loaded.getDeclaredMethods()}
    packed = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for position, argument in enumerate(arguments):
        packed[position] = argument
    return classes[class_name][name].invoke(None, packed)


def joined_sources(files: Iterable[Traversable]) -> str:
    """Return Java files as one compilation unit: their imports, then their classes."""
    lines = [line for each in files for line in each.read_text(encoding="utf-8").splitlines()]
    imports = {line: None for line in lines if line.startswith("import ")}
    return "\n".join((*imports, *(line for line in lines if line not in imports)))
