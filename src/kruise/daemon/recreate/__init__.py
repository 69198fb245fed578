"""The part of the daemon that stops containers for ContainerRecreateRequests."""
