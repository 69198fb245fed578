"""EphemeralJob: ephemeral containers for running pods, a few pods at a time."""
