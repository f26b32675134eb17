"""Leadline inside other tools; each module is optional and loads its tool when it is imported."""
