"""One or two examples of each command, for its help and its page."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "analyze": (
        "rookery analyze sales.orders",
        "rookery analyze 'sales.*' --exclude comment --histogram amount",
    ),
    "stats": (
        "rookery stats sales.orders",
        "rookery stats sales.orders --partition day=2026-01-31",
    ),
    "explain": ("rookery explain sales.orders \"customer_id = 42 AND day >= '2026-01-01'\"",),
    "read": (
        'rookery read sales.orders "customer_id = 42" --columns id,amount',
        "rookery read sales.orders --limit 1000 --output csv > orders.csv",
    ),
    "count": ("rookery count sales.orders \"status = 'open'\"",),
    "estimate": (
        'rookery estimate sales.orders "amount > 100" --group-by status',
        'rookery estimate --sql "SELECT * FROM sales.orders WHERE amount > 100"',
    ),
    "status": (
        "rookery status",
        "rookery status sales.orders --columns",
    ),
    "discover": ("rookery discover 'sales.*' --kind foreign-key",),
    "maintain": (
        "rookery maintain 'sales.*' --dry-run",
        "rookery maintain sales.orders --only compaction",
    ),
    "watch": (
        "rookery watch 'sales.*' --every 15m --metrics 9090",
        "rookery watch --once --log-format json",
    ),
    "history": (
        "rookery history",
        "rookery history sales.orders --limit 5",
    ),
    "doctor": (
        "rookery doctor",
        "rookery doctor --catalog prod --only catalog --only read",
    ),
    "index add": ("rookery index add sales.orders bloom customer_id",),
    "index list": ("rookery index list sales.orders",),
    "index drop": ("rookery index drop sales.orders bloom customer_id",),
    "policy show": ("rookery policy show sales.orders",),
    "policy check": ("rookery policy check rookery.yaml",),
    "puffin inspect": (
        "rookery puffin inspect statistics.puffin",
        "rookery puffin inspect s3://bucket/statistics.puffin --table sales.orders",
    ),
    "puffin cat": ("rookery puffin cat statistics.puffin --blob 0 > sketch.bin",),
    "puffin verify": ("rookery puffin verify statistics.puffin",),
    "puffin copy": ("rookery puffin copy statistics.puffin smaller.puffin --codec zstd",),
}
