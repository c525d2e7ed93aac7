"""Methods that compare or project gradients."""
