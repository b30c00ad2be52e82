"""The connection to a daemon: frames out, replies in."""
