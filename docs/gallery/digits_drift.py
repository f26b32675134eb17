# %% [markdown]
# # A camera grows old
#
# **Pixels die, noise grows, and nobody labels the pictures any more. How many digits are still read correctly?**
#
# A small network reads handwritten digits from a camera of 8 x 8 pixels. It was checked once, on labelled pictures,
# when the camera was new. Month by month the camera gets worse. We estimate the accuracy of each month from the
# network's outputs alone, and look at the labels only afterwards.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import leadline as ll
from leadline.report.style import COLOURS

X, y = load_digits(return_X_y=True)  # 1,797 real digits
X_train, X_rest, y_train, y_rest = train_test_split(X / 16, y, train_size=600, random_state=0)
X_valid, X_later, y_valid, y_later = train_test_split(X_rest, y_rest, train_size=500, random_state=0)
network = MLPClassifier((64,), alpha=0.01, learning_rate_init=3e-3, max_iter=500, random_state=0)
network.fit(X_train, y_train)

validation = ll.from_sklearn(network, X_valid, y_valid)
model = ll.Auto().fit(validation)
print(f"accuracy when the camera was new: {validation.accuracy:.1%}")

# %% [markdown]
# The camera ages in two ways. Each pixel has a month in which it dies and stays dark; by the end of the year three in
# ten have. And what the others see gets noisier.

# %%
MONTHS = np.arange(13)
dies_in = np.random.default_rng(3).uniform(0, 40, size=64)


def aged(images, month):
    """Return what the camera sees after so many months."""
    noise = np.random.default_rng(month).normal(0, 0.025 * month, images.shape)
    return np.where(dies_in < month, 0, np.clip(images + noise, 0, 1))


seen = [ll.from_sklearn(network, aged(X_later, month)) for month in MONTHS]
estimates = [model.estimate(outputs) for outputs in seen]

# %% [markdown]
# No label has been used so far. Now we look. *Mean confidence* is the number that many dashboards show in place of an
# accuracy: the average of the largest probability.

# %%
truth = [float(np.mean(outputs.predictions == y_later)) for outputs in seen]
confidence = [network.predict_proba(aged(X_later, month)).max(axis=1).mean() for month in MONTHS]
print("month   true   estimated      90 % interval   mean confidence")
for month in MONTHS[::3]:
    accuracy, (low, high) = estimates[month].accuracy, estimates[month].interval
    print(f"{month:5} {truth[month]:6.1%} {accuracy:11.1%}   {low:.1%} to {high:.1%} {confidence[month]:17.1%}")

# %% [figure]
BLUE, ORANGE = COLOURS[:2]
figure, (strip, ax) = plt.subplots(
    2,
    1,
    num="True and estimated accuracy while a camera ages over twelve months, with the pictures that it takes",
    figsize=(7.2, 4.7),
    height_ratios=[1, 7],
    sharex=True,
)
figure.suptitle("The camera fails, confidence hardly falls, the estimate does", x=0.02, ha="left")
zero = X_later[np.flatnonzero(y_later == 0)[2]][None]
for month in MONTHS:
    picture = OffsetImage(aged(zero, month).reshape(8, 8), zoom=3.15, cmap="gray", clim=(0, 1), interpolation="nearest")
    strip.add_artist(AnnotationBbox(picture, (month, 0.5), frameon=False, pad=0))
strip.set(ylim=(0, 1))
strip.axis("off")
low, high = np.transpose([estimate.interval for estimate in estimates])
ax.fill_between(MONTHS, low, high, color=BLUE, alpha=0.14, linewidth=0)
ax.plot(MONTHS, confidence, color=ORANGE)
ax.plot(MONTHS, [estimate.accuracy for estimate in estimates], color=BLUE)
ax.plot(MONTHS, truth, "o", color="black", markersize=5)
ax.text(12.25, confidence[-1], "mean confidence", color=ORANGE, va="center")
ax.text(12.25, truth[-1] + 0.012, "truth", va="bottom")
ax.text(12.25, truth[-1] + 0.004, "estimate, and its\n90 % interval", color=BLUE, va="top")
ax.set(xlim=(-0.5, 14.8), xticks=MONTHS, xlabel="age of the camera in months", ylabel="accuracy")
ax.xaxis.set_label_coords(0.42, -0.1)
ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
plt.show()

# %% [markdown]
# In month 12 the classifier still claims eight right answers in ten, and the estimate says six. The mean confidence
# of a classifier tells how sure it is, and a broken camera does not make it much less sure. What gives it away is
# that dead pixels push the predictions towards some digits, which the estimate undoes. It is up to three points off
# here, either way, and its interval is wide: ten points to each side where the pictures have changed. No interval is
# missed.
