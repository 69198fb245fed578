"""SidecarSet: containers that pods get when they are made, and that are updated in them in place."""
