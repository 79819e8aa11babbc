"""Text, its split into training and held-out files, and batches by index."""

from workbench.datasets.batches import batch, heldout
from workbench.datasets.check import check_text
from workbench.datasets.text import Text, open_text

__all__ = ["Text", "batch", "check_text", "heldout", "open_text"]
