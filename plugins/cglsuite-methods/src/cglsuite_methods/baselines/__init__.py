"""Baselines: joint training (upper bound), random replay and EvolveGCN. Fine-tuning, the lower bound, is the class `Method` itself."""
