"""The steps of the pipeline, one a module, and what they share."""
