"""The webhook server: TLS, certificates, registration, review and conversion, the ordered pod chain."""
