"""From a notifier to a driver's publisher. Private; the public names are in ``notifier_kafka``."""
