# %% [markdown]
# # A graph that comes apart
#
# **A graph network trusts its neighbours. What is its accuracy worth where the neighbours are no longer alike?**
#
# Nodes are handwritten digits. Each sees only the left half of its own image; edges join digits whose right halves
# are alike. A graph convolutional network in forty lines of NumPy learns to read them. Then the graph decays: edges
# are rewired at random, as links go stale, and *homophily*, the share of edges between nodes of one class, falls.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import coo_matrix, diags, identity
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

import leadline as ll
from leadline.report.style import COLOURS, RIGHT, WRONG

images, y = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8) / 16
features, hidden_half = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
n = len(y)
neighbours = NearestNeighbors(n_neighbors=5).fit(hidden_half).kneighbors(return_distance=False)
edges = np.column_stack([np.repeat(np.arange(n), 5), neighbours.ravel()])


def normalised(edges):
    """Return the adjacency matrix with self-loops, each row summing to one, shape (n, n)."""
    ones = np.ones(len(edges))
    adjacency = coo_matrix((ones, tuple(edges.T)), shape=(n, n)) + identity(n)
    return (diags(1 / np.asarray(adjacency.sum(axis=1)).ravel()) @ adjacency).tocsr()


def homophily(edges):
    """Return the share of edges between nodes of one class."""
    return np.mean(y[edges[:, 0]] == y[edges[:, 1]])


print(f"{n:,} nodes, {len(edges):,} edges, homophily {homophily(edges):.0%}")

# %% [markdown]
# The network: two layers, each a mean over neighbours and a matrix. Its gradient is written out, and Adam takes the
# steps.

# %%
rng = np.random.default_rng(0)
train, valid, test = np.array_split(rng.permutation(n), 3)


def forward(adjacency, first, second):
    """Return what enters the second layer and the logits."""
    hidden = np.maximum(adjacency @ (features @ first), 0)
    return hidden, adjacency @ (hidden @ second)


def fit_network(adjacency, steps=200, rate=0.01, decay=5e-4):
    """Return the two matrices after training on the nodes of ``train``."""
    weights = [rng.normal(0, 0.2, (32, 32)), rng.normal(0, 0.2, (32, 10))]
    means, squares = ([np.zeros_like(w) for w in weights] for _ in range(2))
    for step in range(1, steps + 1):
        hidden, logits = forward(adjacency, *weights)
        error = np.zeros_like(logits)
        shifted = np.exp(logits[train] - logits[train].max(axis=1, keepdims=True))
        error[train] = (shifted / shifted.sum(axis=1, keepdims=True) - np.eye(10)[y[train]]) / len(train)
        back = adjacency.T @ error
        gradients = [features.T @ (adjacency.T @ (back @ weights[1].T * (hidden > 0))), hidden.T @ back]
        for i in range(2):
            gradient = gradients[i] + decay * weights[i]
            means[i] = 0.9 * means[i] + 0.1 * gradient
            squares[i] = 0.999 * squares[i] + 0.001 * gradient**2
            scaled = means[i] / (1 - 0.9**step) / (np.sqrt(squares[i] / (1 - 0.999**step)) + 1e-8)
            weights[i] -= rate * scaled
    return weights


adjacency = normalised(edges)
weights = fit_network(adjacency)
logits = forward(adjacency, *weights)[1]
model = ll.Auto().fit(logits[valid], y[valid])
print(f"accuracy on the graph as it was: {model.source_accuracy_:.1%}")

# %% [markdown]
# Now the graph decays. The weights stay; only who is whose neighbour changes.

# %%
SHARES = np.linspace(0, 1, 11)
stale, elsewhere = rng.random(len(edges)), rng.integers(0, n, len(edges))
decayed = [np.column_stack([edges[:, 0], np.where(stale < share, elsewhere, edges[:, 1])]) for share in SHARES]
seen = [forward(normalised(graph), *weights)[1][test] for graph in decayed]
estimates = [model.estimate(logits) for logits in seen]
truth = [np.mean(logits.argmax(axis=1) == y[test]) for logits in seen]
plain = ll.make("ac").fit(logits[valid], y[valid])
confidence = [plain.estimate(logits).accuracy for logits in seen]
print("homophily   true   estimated      90 % interval")
for i in range(0, 11, 2):
    low, high = estimates[i].interval
    print(f"{homophily(decayed[i]):9.0%} {truth[i]:6.1%} {estimates[i].accuracy:11.1%}   {low:.1%} to {high:.1%}")

# %% [figure]
BLUE, ORANGE = COLOURS[:2]
place = TSNE(random_state=0, init="pca", perplexity=40, max_iter=500).fit_transform(images.reshape(n, -1))
figure = plt.figure(
    "A graph of digits, its edges rewired at random, and the accuracy of a graph network on it", (7.2, 6.0)
)
grid = figure.add_gridspec(2, 3, height_ratios=[1, 1.25])
shown = np.random.default_rng(1).random(len(edges)) < 0.05
for column, number in enumerate([0, 4, 8]):
    ax = figure.add_subplot(grid[0, column])
    ends = place[decayed[number][shown]]
    lines = np.concatenate([ends, np.full((len(ends), 1, 2), np.nan)], axis=1)
    ax.plot(*lines.reshape(-1, 2).T, color="#C3CAD1", linewidth=0.3)
    right = seen[number].argmax(axis=1) == y[test]
    ax.scatter(*place[test].T, s=5, color=np.where(right, RIGHT, WRONG), linewidths=0, zorder=3)
    ax.axis("off")
    ax.set_title(f"homophily {homophily(decayed[number]):.0%}", loc="center", pad=2)
ax = figure.add_subplot(grid[1, :])
x = [homophily(graph) for graph in decayed]
ax.fill_between(x, *np.transpose([one.interval for one in estimates]), color=BLUE, alpha=0.14, linewidth=0)
ax.plot(x, confidence, color=ORANGE, linewidth=1.5)
ax.plot(x, [one.accuracy for one in estimates], color=BLUE)
ax.plot(x, truth, "o", color="black", markersize=5)
ax.set(xlim=(0.94, -0.1), xticks=[0.9, 0.7, 0.5, 0.3, 0.1], xlabel="homophily", ylabel="accuracy")
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(lambda value, _: f"{value:.0%}")
ax.text(x[-1] - 0.015, confidence[-1], "mean confidence", color=ORANGE, va="bottom")
ax.text(x[-1] - 0.015, estimates[-1].accuracy, "estimate", color=BLUE, va="center")
ax.text(x[-1] - 0.015, truth[-1], "truth", va="top")
figure.suptitle("The neighbours part, the network errs, and its outputs show it", x=0.02, ha="left")
plt.show()

# %% [markdown]
# Digits that the network reads wrongly are orange. Where every edge is random it is hardly better than chance. The
# estimate follows it down, within five points while two edges in five join the same digit. Then it is 8 to 15 points
# too high, and the truth lies near the lower end of its interval: a network that guesses is unlike anything it knows.
# The mean confidence never falls far below 40 %: a mean over random neighbours
# looks like a digit, if no particular one.
