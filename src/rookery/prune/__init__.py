"""The cascade: which files, row groups and pages may have matching rows. Others are skipped only on proof."""
