"""Messages of protocol v1, generated."""
