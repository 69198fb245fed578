"""The node daemon: what the API server cannot do on a node. `docs/node-daemon.md` tells how it is built."""
