"""Relations between columns, from the sketches of states alone: keys, references, dependencies, copies."""

from rookery.discover.column import ColumnFacts, NotCompared, TableFacts
from rookery.discover.dependencies import Dependency, dependencies
from rookery.discover.describe import describe_table
from rookery.discover.foreign_keys import ForeignKey, Likely, foreign_keys
from rookery.discover.overlap import Overlap, overlaps
from rookery.discover.same_values import SameValues, same_values
from rookery.discover.unique import UniqueKey, unique_keys

__all__ = [
    "ColumnFacts",
    "Dependency",
    "ForeignKey",
    "Likely",
    "NotCompared",
    "Overlap",
    "SameValues",
    "TableFacts",
    "UniqueKey",
    "dependencies",
    "describe_table",
    "foreign_keys",
    "overlaps",
    "same_values",
    "unique_keys",
]
