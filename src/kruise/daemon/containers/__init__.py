"""The part of the daemon that reports what containers were made from, and restarts those of an old environment."""
