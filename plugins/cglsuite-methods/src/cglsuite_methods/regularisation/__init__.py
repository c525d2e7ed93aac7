"""Methods that preserve earlier tasks with a penalty or a distillation loss."""
