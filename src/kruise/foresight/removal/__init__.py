"""What a deletion or a drain would do, before it is done. Pure."""
