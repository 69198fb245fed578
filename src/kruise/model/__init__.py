"""One fast model of a cluster: objects, guarded writes, nodes and time, and the loop of controllers on it.

It knows no kind of workload. Forecasts run on it, and so do the property tests of every kind. `kruise.local` is a whole
API server; this is only what controllers can see of a cluster, and it is held to `local` and to real clusters by the
cases of `tests/foresight_reality`.

    world        objects in the stores that controllers read; writes as a server answers them; time    (patching)
    loop         controllers over a world: keys, passes, wakes; deaths and late plans for tests
    nodes        what happens to pods by itself, in its usual time                                     (times)
    room         where new pods go, and which find no node
    kubelet      the steps themselves, as values                                     (podstates, images, agent)
"""
