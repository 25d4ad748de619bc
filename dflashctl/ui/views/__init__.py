"""One module per command: its data as renderables, the verdict first."""
