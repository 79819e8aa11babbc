"""Pages of the dashboard: watch and steer a run of real processes, look through a recorded tape.

``workbench serve`` and ``panel serve apps/dashboard.py`` show them.  A page holds no protocol and no analysis: it
asks the engine and the tape, in threads of their own, and shows what it last heard.
"""
