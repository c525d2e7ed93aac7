"""Methods that store items of earlier tasks and replay them."""
