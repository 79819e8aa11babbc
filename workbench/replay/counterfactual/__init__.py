"""Counterfactuals: what a run would have been with one thing changed (DESIGN section 3)."""
