"""CRI v1 over the socket of a real container runtime: the few calls that the daemon makes."""
