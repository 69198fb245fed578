"""What a change will do, worked out before it is made: the kinds' own decisions, carried out in a model of the cluster.

Nothing here talks to a cluster. Objects come in as they were read, a `Forecast` comes out.
"""
