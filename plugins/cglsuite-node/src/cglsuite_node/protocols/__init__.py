"""The published node-classification protocols on the datasets of this package, with one module per protocol."""
