"""The calls that the command line, notebooks and the web share; each returns a report."""
