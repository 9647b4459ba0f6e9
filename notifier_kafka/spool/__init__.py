"""The disk between publishers and a log that is slow or away. Private."""
