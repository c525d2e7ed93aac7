"""Training of several runs as one stacked model. Only cells that ask for it load this package, and it is then part of their keys."""
