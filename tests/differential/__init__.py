"""Random tables and random predicates: what Rookery reads is what Spark reads, row for row."""
