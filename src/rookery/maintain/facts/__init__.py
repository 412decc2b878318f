"""What metadata tells of a table: the age of its statistics, how it lies, who sees what."""
