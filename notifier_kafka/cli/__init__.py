"""The command line. Private: its interface is the program ``notifier-kafka``."""
