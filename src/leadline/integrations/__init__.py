"""Leadline inside other tools, and their outputs in Leadline; each module is optional and loads its tool when needed."""
