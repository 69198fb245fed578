"""ContainerRecreateRequest: containers of a running pod are stopped, so that they start anew."""
