"""Methods that keep items of earlier tasks and train on them again."""
