"""The numbers on plain numpy columns; no labels, no store."""
