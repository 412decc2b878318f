"""Avro's container files, decoded into columns: Iceberg's manifests and manifest lists are such files."""
