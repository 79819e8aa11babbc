"""Several runs side by side: settings that differ, the first divergence, end figures, curves on one axis."""
