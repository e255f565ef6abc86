"""Hostile models and hostile calls: whatever they are, an exception of the documented kinds is the worst that happens.

``python -m tests.fuzz`` runs for long and tells what it found; the tests here run the same mutants, fewer of them.
"""
