"""ImagePullJob."""
