"""Parts of a message graph from which a network computes the outputs of some nodes: sampled, or one small graph per node."""
