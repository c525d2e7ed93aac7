"""Results that several people share: publish, pull, merge, submit, and the hosted board."""
