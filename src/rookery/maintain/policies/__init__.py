"""Policies of tables: read from files and table properties, checked, and selected."""
