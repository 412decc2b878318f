"""What is wanted of tables: read from files and table properties, checked, and chosen."""
