"""Text, tables and bars for a terminal. Private."""
