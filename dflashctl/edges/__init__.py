"""The outside world: each module wraps one library or one facility of the system."""
