"""What was tried, and what result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts over all cases; a net in which nothing is pruned would catch nothing."""

    tables: int = 0
    predicates: int = 0  # that were read, a table or snapshot each
    matching: int = 0  # of which some rows match, but not all
    skipping: int = 0  # of which some files were skipped
    files: int = 0  # that the predicates were asked of
    files_skipped: int = 0
    by_spark: Counter[str] = field(default_factory=Counter)  # predicates, by the way they were asked
    queries: Counter[str] = field(default_factory=Counter)  # by their form
    planned: int = 0  # queries whose plan was looked at
    planned_pruned: int = 0
    query_tables: int = 0
    query_tables_pruned: int = 0
    statistics: int = 0  # columns whose numbers were compared
    expressions: int = 0
    left_to_spark: int = 0
    lost_by_iceberg: int = 0  # what Iceberg's own pruning loses, with and without Rookery
    refused: Counter[str] = field(default_factory=Counter)  # by Rookery, though Spark takes them
    refused_by_spark: int = 0

    def __str__(self) -> str:
        asked = self.predicates + self.left_to_spark
        return (
            f"{self.tables} tables; {self.predicates:,} predicates, {self.matching:,} of some rows, "
            f"{_share(self.skipping, asked)} skip files, "
            f"{_share(self.files_skipped, self.files)} of files skipped, "
            f"{self.by_spark.total():,} by Spark, {self.expressions:,} expressions, "
            f"{self.left_to_spark:,} left to Spark; {self.queries.total():,} queries, "
            f"{_share(self.planned_pruned, self.planned)} pruned "
            f"({_share(self.query_tables_pruned, self.query_tables)} of tables); "
            f"{self.statistics:,} column statistics; {self.lost_by_iceberg} lost by Iceberg, "
            f"{self.refused.total():,} refused, {self.refused_by_spark:,} refused by Spark"
        )

    def details(self) -> str:
        """The counts by kind, a line each."""
        lines = [
            f"  by Spark: {_listed(self.by_spark)}",
            f"  queries: {_listed(self.queries)}",
        ]
        lines += [f"  {count} refused: {reason}" for reason, count in self.refused.most_common(8)]
        return "\n".join(lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common())


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "0%"
