"""One module for each command, or family of commands. Private."""
