"""The steps of the pipeline, one per module, and what they share."""
