"""Training runs: their plans, files, seeds and processes."""
