"""Methods that compare gradients or project them."""
