"""What everybody else must know of a kind: its face, how its progress is told, what a forecast asks it."""
