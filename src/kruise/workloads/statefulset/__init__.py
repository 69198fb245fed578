"""Advanced StatefulSet: pods with a fixed name and claims of their own, updated in place where possible."""
