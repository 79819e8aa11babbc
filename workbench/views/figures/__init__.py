"""One figure a file (two where they are drawn alike)."""
