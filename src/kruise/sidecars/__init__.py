"""What runs beside the containers of a pod: sidecars, the order in which containers start, and how they end."""
