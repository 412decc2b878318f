"""Random settings of a session that change what a text means."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tests.differential.world import configured

ZONE = "spark.sql.session.timeZone"
_CASE = "spark.sql.caseSensitive"
_ZONES = ("UTC", "UTC", "America/New_York", "Asia/Kolkata")
_OTHERS: Mapping[str, tuple[str, ...]] = {
    "spark.sql.ansi.enabled": ("false", "false", "true"),
    "spark.sql.ansi.doubleQuotedIdentifiers": ("true",),
    "spark.sql.parser.escapedStringLiterals": ("true",),
    "spark.sql.parser.quotedRegexColumnNames": ("true",),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("true",),
    _CASE: ("true",),
    "spark.sql.timestampType": ("TIMESTAMP_NTZ",),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "EXCEPTION"),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("true",),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("false",),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": ("true",),
    "spark.sql.legacy.setopsPrecedence.enabled": ("true",),
    "spark.sql.legacy.ctePrecedencePolicy": ("LEGACY",),
    "spark.sql.legacy.nullInEmptyListBehavior": ("true",),
    "spark.sql.adaptive.enabled": ("true",),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("false",),
}


@dataclass(frozen=True)
class Session:
    """Settings that are in force while a case is asked."""

    settings: Mapping[str, str]

    @property
    def zone(self) -> str:
        """The zone of local times."""
        return self.settings[ZONE]

    @property
    def case_sensitive(self) -> bool:
        """Whether names differ by their case alone."""
        return self.settings.get(_CASE) == "true"

    @property
    def plain(self) -> Session:
        """The same with the default meaning of texts, which calls without a session have."""
        return Session({ZONE: self.zone})

    def __str__(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.settings.items())

    @contextmanager
    def applied(self, *sparks: SparkSession) -> Iterator[None]:
        """Set them, and put back what was set before."""
        with ExitStack() as stack:
            for spark in sparks:
                stack.enter_context(configured(spark, self.settings))
            yield


UTC = Session({ZONE: "UTC"})


def draw(rng: random.Random) -> Session:
    """Half of the sessions have a zone only, the others one to three more settings."""
    settings = {ZONE: rng.choice(_ZONES)}
    if rng.random() < 0.5:
        for key in rng.sample(sorted(_OTHERS), rng.choice((1, 2, 3))):
            settings[key] = rng.choice(_OTHERS[key])
        if rng.random() < 0.4:  # the one that changes most
            settings["spark.sql.ansi.enabled"] = "false"
    return Session(settings)
