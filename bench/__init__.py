"""Benchmarks, as ratios within one run: `python -m bench`. See docs/benchmarks.md."""
