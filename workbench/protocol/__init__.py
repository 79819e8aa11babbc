"""The protocol: state machines without I/O that engine, simulator and replay all drive."""
