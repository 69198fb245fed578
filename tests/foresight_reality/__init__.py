"""The proof that a forecast equals what a cluster then does: random cases, played out, and compared."""
