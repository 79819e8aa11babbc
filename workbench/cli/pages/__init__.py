"""How each report of a run looks on a terminal: ``show(report, width)`` yields what to print, and computes nothing."""
