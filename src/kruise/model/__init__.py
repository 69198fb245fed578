"""One fast model of a cluster: objects and guarded writes, nodes, time.

It knows no kind of workload. Forecasts run on it, and so do the property tests of every kind.
"""
