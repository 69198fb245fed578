"""Deletion protection: a label makes the API server refuse a deletion (DP)."""
