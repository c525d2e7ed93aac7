"""Methods that preserve earlier tasks by a penalty or a distillation loss."""
