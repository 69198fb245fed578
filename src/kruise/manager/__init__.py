"""The manager process: flags, feature gates, wiring, health, metrics and logs."""
