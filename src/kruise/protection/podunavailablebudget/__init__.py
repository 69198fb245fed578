"""PodUnavailableBudget: how many pods of an application may be made unavailable at a time."""
