"""The kinds of `policy.kruise.io`."""
