"""The CustomResourceDefinitions of `policy.kruise.io`."""
