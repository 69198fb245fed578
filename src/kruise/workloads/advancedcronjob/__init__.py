"""AdvancedCronJob: a Job, a BroadcastJob or an ImageListPullJob at the times of a schedule."""
