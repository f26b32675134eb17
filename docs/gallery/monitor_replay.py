# %% [markdown]
# # Thirty weeks of post
#
# **Two offices sort letters by their handwritten digits. One lens loses its focus in spring. When does the monitor notice,
# and does it stay silent at Christmas, when only the mix of letters is different?**
#
# A monitor takes a batch of outputs each week, without labels. A quarter of the labels arrives too, four weeks late. We
# replay thirty weeks in fast motion and ask, week by week, what was known then.

# %%
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import leadline as ll
from leadline.report.style import COLOURS

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X / 16, y, train_size=600, random_state=0)
X_valid, X_post, y_valid, y_post = train_test_split(X_rest, y_rest, train_size=600, random_state=0)
network = MLPClassifier((64,), alpha=0.1, learning_rate_init=3e-3, max_iter=500, random_state=0).fit(X_train, y_train)
model = ll.Auto().fit(ll.from_sklearn(network, X_valid, y_valid))

# %% [markdown]
# What happens: in weeks 9 to 13 three digits make up two thirds of the post. From week 19 on, the lens in the north blurs
# a little more each week.

# %%
WEEKS, ROWS, LATE = 30, 500, 4
CHRISTMAS, BLURRED = range(9, 14), 19
START = datetime(2025, 10, 6, tzinfo=UTC)


def post(week):
    """Return a week's outputs, with office, time and id of each letter, and the true digits."""
    rng = np.random.default_rng(week)
    weight = np.where(np.isin(y_post, [0, 2, 5]), 5.0 if week in CHRISTMAS else 1.0, 1.0)
    rows = rng.choice(len(y_post), ROWS, p=weight / weight.sum())
    office = np.where(rng.random(ROWS) < 0.5, "north", "south")
    images = X_post[rows].reshape(-1, 8, 8)
    width = 0.15 * max(0, week - BLURRED + 1)
    images = np.where((office == "north")[:, None, None], gaussian_filter(images, (0, width, width)), images)
    seconds = 7 * 86_400 * week + np.arange(ROWS) * (7 * 86_400 // ROWS)
    times = np.datetime64("2025-10-06T00:00:00") + seconds.astype("timedelta64[s]")
    ids = [f"{week}-{row}" for row in range(ROWS)]
    metadata = {"office": office, "ts": times, "id": ids}
    return ll.from_sklearn(network, images.reshape(-1, 64), metadata=metadata), y_post[rows]


# %% [markdown]
# The replay. `register` says what is watched; `add` takes a batch; `add_labels` takes labels whenever they come, by the id of
# the row.

# %%
now = START
monitor = ll.Monitor(Path(tempfile.mkdtemp()) / "monitor.db", clock=lambda: now)
monitor.register("post", model, every="1w", by=["office"])
weeks, noticed = [], {}
for week in range(WEEKS):
    weeks.append(post(week))
    now = START + timedelta(weeks=week + 1)
    monitor.add("post", weeks[week][0])
    if week >= LATE:
        outputs, digits = weeks[week - LATE]
        arrived = np.random.default_rng(week).random(ROWS) < 0.25
        monitor.add_labels("post", np.array(outputs.metadata["id"])[arrived], digits[arrived].astype(str))
    for alarm in monitor.alarms("post"):
        noticed.setdefault(alarm.number, (week, alarm))

for week, alarm in noticed.values():
    print(f"known after week {week}: {alarm.rule} ({'an alarm' if alarm.harmful else 'information'})")
    print(f"    {alarm.reason}\n")

# %% [markdown]
# How good were the estimates? The monitor keeps its own record, from the labels that came. We know the rest.

# %%
record = monitor.history("post").record
print(f"{record.inside} of {record.windows} weekly intervals hold what the labels show; "
      f"estimates {record.mean_error:.1%} off on average")  # fmt: skip

# %% [figure]
BLUE, ORANGE = COLOURS[:2]
figure, panels = plt.subplots(
    2, 1, num="Accuracy of two offices over thirty weeks: estimates, late labels, truth, and the week of the alarm",
    figsize=(7.2, 5.4), sharex=True, sharey=True,
)  # fmt: skip
figure.suptitle("Silent at Christmas, awake when the lens blurs", x=0.02, ha="left")
x = np.arange(WEEKS)
for ax, office in zip(panels, ["north", "south"], strict=True):
    rows = list(monitor.history("post", office))
    truth = [np.mean((outputs.predictions == digits)[outputs.metadata["office"] == office]) for outputs, digits in weeks]
    ax.axvspan(CHRISTMAS[0] - 0.5, CHRISTMAS[-1] + 0.5, color="#F3F1EC", linewidth=0, zorder=0)
    ax.fill_between(x, *np.transpose([row.estimate.interval for row in rows]), color=BLUE, alpha=0.14, linewidth=0)
    ax.plot(x, [row.estimate.accuracy for row in rows], color=BLUE)
    labelled = [(week, row.realised) for week, row in enumerate(rows) if row.realised is not None]
    ax.plot(*np.transpose(labelled), "o", color="white", markeredgecolor="black", markersize=5)
    ax.plot(x, truth, color="black", linewidth=1.2)
    ax.set_title(f"office {office}")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
panels[1].set(xlabel="week", xlim=(-0.5, WEEKS + 4.5), xticks=range(0, 30, 5))
plt.show()
monitor.close()
