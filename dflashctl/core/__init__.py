"""Pure decisions: standard library only, no files, no clock, no environment."""
