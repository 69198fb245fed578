"""Protection of what runs: from deletion, and from too many disruptions at once."""
