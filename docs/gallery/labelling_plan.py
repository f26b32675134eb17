# %% [markdown]
# # A hundred labels
#
# **A scanner is mounted upside down, and the classifier goes on giving confident answers. How many labels does it
# take to find out how wrong they are?**
#
# Whoever sees only outputs cannot tell how often a classifier is *confidently* wrong. A few labels can, if they are
# of the right rows. `plan_labels` chooses the rows and `estimate_with_labels` gives an interval that holds whatever
# happened.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import leadline as ll
from leadline.report.style import COLOURS

images, y = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8) / 16
kept, scanned, y_kept, y_scanned = train_test_split(images, y, test_size=0.5, random_state=0)
train, valid, y_train, y_valid = train_test_split(kept, y_kept, test_size=0.5, random_state=0)
classifier = LogisticRegression(C=10.0, max_iter=2000).fit(train.reshape(-1, 64), y_train)
model = ll.Auto().fit(ll.from_sklearn(classifier, valid.reshape(-1, 64), y_valid))

upside_down = scanned[:, ::-1, ::-1]
target = ll.from_sklearn(classifier, upside_down.reshape(-1, 64))
before = model.estimate(target)
print(before)

# %% [markdown]
# What is true of these rows? Nobody at the scanner knows. We do, since we turned the pictures ourselves.

# %%
right = target.predictions == y_scanned
print(f"true accuracy: {right.mean():.1%}")

# %% [markdown]
# The outputs show that something happened, and far too little of it: a 6 upside down is a perfectly good 9. The
# estimate is thirty points off, and the interval misses. Now we plan 200 labels. Rows are drawn at random, more of
# them where the outputs leave doubt, and every beginning of the plan is a valid sample: stop when the time is up.

# %%
plan = ll.plan_labels(model, target, budget=200, seed=0)
after = ll.estimate_with_labels(model, target, plan, y_scanned[plan.rows[:100]])
print(after)
print("do the labels agree with what the outputs say?", after.diagnostics["agrees"])

# %% [figure]
BLUE, ORANGE = COLOURS[:2]
counts = np.arange(10, 201, 10)
grown = [ll.estimate_with_labels(model, target, plan, y_scanned[plan.rows[:count]]) for count in counts]
low, high = np.transpose([estimate.interval for estimate in grown])
figure, ax = plt.subplots(
    num="The interval from planned labels closes on the true accuracy; the estimate without labels is far above it",
    figsize=(7.2, 4.4),
)
ax.axhspan(*before.interval, xmax=200 / 252, color=ORANGE, alpha=0.13, linewidth=0)
ax.plot([0, 200], [before.accuracy] * 2, color=ORANGE)
ax.fill_between(counts, low, high, color=BLUE, alpha=0.16, linewidth=0)
ax.plot(counts, [estimate.accuracy for estimate in grown], color=BLUE)
ax.plot([0, 200], [right.mean()] * 2, color="black", linewidth=1.2, linestyle=(0, (4, 3)))
ax.text(204, before.accuracy, "outputs alone", color=ORANGE, va="center")
ax.text(204, 0.42, "with labels,\n90 % interval", color=BLUE, va="bottom")
ax.text(204, right.mean(), "truth", va="center")
at = int(np.flatnonzero(counts == 100)[0])
ax.annotate(
    f"100 labels: {low[at]:.0%} to {high[at]:.0%}",
    (100, low[at]),
    (100, low[at] - 0.14),
    color=BLUE,
    ha="center",
    arrowprops={"arrowstyle": "-", "color": BLUE, "shrinkB": 0},
)
sure = np.flatnonzero(~right & (before.correctness > np.quantile(before.correctness, 0.6)))[:9]
for place, row in zip(np.linspace(10, 190, 9), sure, strict=True):
    picture = OffsetImage(upside_down[row], zoom=2.6, cmap="gray", interpolation="nearest")
    ax.add_artist(AnnotationBbox(picture, (place, 0.96), frameon=False, pad=0))
    ax.text(place, 0.87, target.classes[target.predictions[row]], ha="center", va="center", color=ORANGE)
ax.text(204, 0.96, "scanned", va="center")
ax.text(204, 0.87, "read as", va="center", color=ORANGE)
ax.set(
    xlim=(0, 252),
    ylim=(0, 1.03),
    yticks=np.arange(0, 1, 0.2),
    xticks=range(0, 201, 50),
    xlabel="labels, in the order of the plan",
    ylabel="accuracy",
)
ax.xaxis.set_label_coords(0.4, -0.11)
ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
figure.suptitle("Sure of itself, and wrong: a few labels show it", x=0.02, ha="left")
plt.show()

# %% [markdown]
# Was that luck? Forty other plans of a hundred labels each say how often the interval holds the truth.

# %%
intervals = []
for seed in range(1, 41):
    other = ll.plan_labels(model, target, budget=100, seed=seed)
    intervals.append(ll.estimate_with_labels(model, target, other, y_scanned[other.rows]).interval)
intervals = np.array(intervals)
held = (intervals[:, 0] <= right.mean()) & (right.mean() <= intervals[:, 1])
print(f"{held.sum()} of {len(held)} intervals hold the truth; mean width {np.ptp(intervals, axis=1).mean():.1%}")

# %% [figure]
figure, ax = plt.subplots(
    num="Forty intervals of a hundred labels each, sorted; most hold the truth", figsize=(7.2, 2.6)
)
order = np.argsort(intervals.mean(axis=1))
colours = np.where(held[order], "#B9D4E8", ORANGE)
ax.vlines(np.arange(len(order)), *intervals[order].T, colors=colours, linewidth=5)
ax.axhline(right.mean(), color="black", linewidth=1.2, linestyle=(0, (4, 3)))
ax.set(xticks=[], xlim=(-1, 40), ylabel="accuracy")
ax.spines["bottom"].set_visible(False)
ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
figure.suptitle(f"Forty plans: {held.sum()} of their intervals hold the truth", x=0.02, ha="left")
plt.show()

# %% [markdown]
# The price is labour: an interval of a hundred labels is some fifteen points wide, whatever the classifier does.
# Where the outputs can be trusted, the estimate is free and often nearer. [A few labels](../labels.md) says how many
# labels buy what.
