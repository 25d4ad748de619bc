"""One module per verb: gather, decide, do, and return a Report."""
