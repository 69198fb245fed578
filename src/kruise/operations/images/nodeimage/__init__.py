"""NodeImage."""
