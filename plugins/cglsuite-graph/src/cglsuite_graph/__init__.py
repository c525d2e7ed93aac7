"""Graph classification and regression for cglsuite: molecules, superpixels, taxi trips, posts and proteins as graphs, with scenarios."""
