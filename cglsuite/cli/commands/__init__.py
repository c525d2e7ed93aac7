"""The built-in commands. Each module is imported only when its command is used."""
