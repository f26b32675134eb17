"""The paper, reproducible: datasets, models, training recipes, experiments, tables and figures."""
