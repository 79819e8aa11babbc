"""Event logs of other trainers as tapes: what they prove, and no more."""
