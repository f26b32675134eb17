"""ALSA, the paper's method: the estimator, its training and its kernels."""
