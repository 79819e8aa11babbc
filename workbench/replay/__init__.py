"""Replay: the programs of a tape executed again with the executors of the run (DESIGN section 3)."""
