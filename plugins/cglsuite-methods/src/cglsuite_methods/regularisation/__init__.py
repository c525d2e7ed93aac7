"""A penalty or a distillation loss protects what was learnt."""
