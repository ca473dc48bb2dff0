"""The trace of a run as OpenTelemetry has it: spans from its ledger, as a file, to a collector, or while it runs."""
