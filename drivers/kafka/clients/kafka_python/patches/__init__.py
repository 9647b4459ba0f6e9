"""What is mended in kafka-python: one module for each defect, each saying which upstream issue it waits for.

The patches need private names of the library. Importing any of them checks all of these first.
"""

from . import required

required.check()
