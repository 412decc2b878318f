"""Facts about a table from its metadata: age of statistics, layout, visibility to engines."""
