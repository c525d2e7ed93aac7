"""Methods that give every task a part of the network."""
