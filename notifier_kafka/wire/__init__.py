"""Notifications as bytes, and names on the log. Private; the formats are in docs/wire-formats.md."""
