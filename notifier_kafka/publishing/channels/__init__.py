"""What becomes of a notification: one module for each value of the option ``driver``. Private."""
