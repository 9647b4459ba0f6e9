"""Notifications in the style of oslo.messaging that are not lost."""
