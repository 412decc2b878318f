"""The cascade: which files, row groups and pages may hold rows that match. Skipped only on proof."""
