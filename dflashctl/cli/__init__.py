"""The command line: signatures and help, no logic."""
