"""The CustomResourceDefinitions of the group `apps.kruise.io`: a module for each kind, named after it."""
