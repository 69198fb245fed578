"""The Kubernetes API client. Nothing else in the project opens a connection to the API."""
