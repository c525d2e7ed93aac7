"""Skeleton-based action recognition for cglsuite: sequences of joint positions as graphs, ST-GCN, datasets and scenarios."""
