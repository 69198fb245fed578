"""PersistentPodState: pods of a StatefulSet that are made again come back to their nodes."""
