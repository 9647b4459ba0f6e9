"""Fault injection under load, and a checker that judges the histories of publishers and listeners."""
