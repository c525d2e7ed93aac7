"""Storage for records: the store and its leases."""
