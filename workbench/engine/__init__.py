"""Real processes: the machines driven by sockets, mapped files and clocks."""
