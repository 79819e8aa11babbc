"""Virtual time: the driver of all machines in one process, its network and faults, training, and the explorer."""
