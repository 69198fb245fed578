"""What commands do. Their flags are declared in `kruise.cli`, which loads no more than that for help."""
