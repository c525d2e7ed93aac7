"""Training that several cells share: of the tasks that they begin with, and before the first one."""
