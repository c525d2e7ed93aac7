"""Methods that accumulate statistics of fixed features. Their encoder is trained on the first task at most."""
