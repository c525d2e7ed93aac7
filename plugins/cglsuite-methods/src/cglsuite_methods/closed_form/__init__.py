"""Methods that accumulate statistics of fixed features, and train an encoder in the first task at most."""
