"""The container image of manager and node daemon, made without a container engine: `python -m hack.image`.

Three layers: what Debian has of Python (no shell, no package manager), the locked dependencies, PyKruise itself. An
upgrade moves the last one alone. All three come from package registries and from this tree; the same inputs give the
same digest. Nothing of another machine is run while it is made, so images for other architectures are made anywhere.
"""
