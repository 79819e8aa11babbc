"""Fragmentation rules, one file each; `workbench.algorithms.fragments.FRAGMENTATIONS` names them."""
