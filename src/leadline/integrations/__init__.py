"""Leadline inside other tools, and their outputs in Leadline; each module is optional, each tool loaded if needed."""
