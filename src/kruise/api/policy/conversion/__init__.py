"""Between the versions of the kinds of `policy.kruise.io`."""
