"""Installing and removing the system: what is installed (pure), and how it gets there and away."""
