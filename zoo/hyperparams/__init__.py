"""Tuned hyperparameters: one YAML file per algorithm, environment ID -> values."""
