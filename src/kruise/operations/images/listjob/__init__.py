"""ImageListPullJob."""
