"""The command line: presentation, no decisions."""
