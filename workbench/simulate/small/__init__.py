"""One small world whose every state within bounds is visited (`workbench.simulate.breadth`)."""
