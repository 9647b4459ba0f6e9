"""What ``notifier-kafka demo`` and ``bench`` run. Private."""
