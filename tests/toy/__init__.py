"""A complete kind, as small as it gets: a Troupe keeps some pods of one image, and changes the image in place."""
