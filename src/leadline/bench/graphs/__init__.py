"""Graphs: node classifiers, citation networks, ogbn-arxiv, and the estimator that reads graphs."""
