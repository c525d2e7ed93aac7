"""Records of third parties: what is checked here before they are accepted, and the marks that say what was verified."""
