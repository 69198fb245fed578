"""A forecast as people and programs read it: lines, table data, JSON and Markdown. Pure; drawing is the caller's."""
