"""The author's kit: conformance checks for methods, datasets, scenarios and metrics, tiny streams, and audits."""
