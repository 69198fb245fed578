"""Conversion between the versions of the kinds of `apps.kruise.io`."""
