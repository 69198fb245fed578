"""What is wrong with an installation, what to do about it, and what can be mended by itself."""
