"""The checkout that the tests are of."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
