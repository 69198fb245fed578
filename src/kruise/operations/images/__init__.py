"""Images on nodes ahead of pods: ImagePullJob, ImageListPullJob and NodeImage, and the secrets that they take along.

A job writes a *task* into the NodeImage of each node that it selects, some at a time. The daemon of the node pulls, and
tells how it went in the status of the NodeImage. The job counts that.
"""
