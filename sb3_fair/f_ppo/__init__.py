"""F-PPO: decisions that are fair now while the groups' futures converge; its baselines, and how all of them are judged."""
