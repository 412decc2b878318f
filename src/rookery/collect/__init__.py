"""The pipeline that computes statistics: a pure plan, and a thin run."""
