"""Tapes in other programs' formats: Perfetto and Chrome traces, NetCDF, CSV."""
