# %% [markdown]
# # Typos
#
# **Two classifiers of text are almost equally good on clean text. Which one should serve users who type on their
# phones, if nobody has labelled what they type?**
#
# Real text is at hand wherever Leadline is installed: SciPy's own documentation. A paragraph comes from one of eight
# parts of the library, statistics or signal processing, say, and a classifier has to tell which.

# %%
import ast
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import leadline as ll
from leadline.report.style import COLOURS, QUIET

PARTS = ["cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "spatial"]


def paragraphs(source):
    """Yield the paragraphs of the documentation in a file of Python, without what is no prose."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            prose = re.split(r"\n(?:Examples|References)\n-+\n", ast.get_docstring(node) or "")[0]
            for paragraph in re.split(r"\n\s*\n", prose):
                words = re.sub(r"\bscipy\.\w+|[^a-z]+", " ", paragraph.lower()).split()
                if len(words) >= 12:
                    yield " ".join(words[:40])


texts, labels, files = [], [], []
for part in PARTS:
    for path in sorted((Path(scipy.__file__).parent / part).glob("*.py")):
        found = sorted(set(paragraphs(path.read_text())))
        texts += found
        labels += [part] * len(found)
        files += [path.name] * len(found)
print(f"{len(texts):,} paragraphs from {len(set(files))} files")
print(texts[1000][:100], "...")

# %% [markdown]
# A third of the paragraphs trains, a third validates, and a third is what users will type. One classifier reads whole
# words, the other pieces of two to five letters.

# %%
texts, labels = np.array(texts), np.array(labels)
train, valid, users = np.array_split(np.random.default_rng(0).permutation(len(texts)), 3)
classifiers = {
    "whole words": make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=30)),
    "pieces of words": make_pipeline(
        TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(2, 5), min_df=3), LogisticRegression(C=30)
    ),
}
models = {}
for name, classifier in classifiers.items():
    classifier.fit(texts[train], labels[train])
    validation = ll.from_sklearn(classifier, texts[valid], labels[valid])
    models[name] = ll.Auto().fit(validation)
    print(f"{name}: {validation.accuracy:.1%} on clean text")

# %% [markdown]
# Users drop, double and mistype letters. We make each letter go wrong with a probability from 0 to 20 %.

# %%
RATES = np.array([0, 0.02, 0.04, 0.06, 0.09, 0.12, 0.16, 0.2])


def mistyped(text, rate, seed):
    """Return a text in which each letter is dropped, doubled or replaced with a probability."""
    rng = np.random.default_rng(seed)
    wrong, kind = rng.random(len(text)) < rate, rng.integers(0, 3, len(text))
    other = rng.choice(list("abcdefghijklmnopqrstuvwxyz"), len(text))
    letters = zip(text, wrong, kind, other, strict=True)
    return "".join(old if old == " " or not bad else ("", 2 * old, new)[way] for old, bad, way, new in letters)


typed = [[mistyped(text, rate, row) for row, text in enumerate(texts[users])] for rate in RATES]
outputs = {name: [ll.from_sklearn(classifier, rows) for rows in typed] for name, classifier in classifiers.items()}
estimates = {name: [models[name].estimate(one) for one in outputs[name]] for name in classifiers}
for name, found in estimates.items():
    print(
        f"{name}: {found[-1].accuracy:.1%} estimated at one letter in five, interval "
        f"{found[-1].interval[0]:.1%} to {found[-1].interval[1]:.1%}"
    )

# %% [markdown]
# Without a label, the answer is there: pieces of words. What do the labels say?

# %%
truths = {
    name: [np.mean(np.array(one.classes)[one.predictions] == labels[users]) for one in found]
    for name, found in outputs.items()
}
for name, found in estimates.items():
    errors = [abs(estimate.accuracy - truth) for estimate, truth in zip(found, truths[name], strict=True)]
    print(
        f"{name}: {truths[name][0]:.1%} to {truths[name][-1]:.1%} true; "
        f"estimates {np.mean(errors):.1%} off on average, {max(errors):.1%} at most"
    )

# %% [figure]
figure, (ax, samples) = plt.subplots(
    2,
    1,
    num="Estimated and true accuracy of two text classifiers against the share of mistyped letters",
    figsize=(7.2, 5.2),
    height_ratios=[4.5, 1],
)
figure.suptitle("Pieces of words bear typos better, and no label was needed", x=0.02, ha="left")
for (name, found), colour in zip(estimates.items(), [COLOURS[1], COLOURS[0]], strict=True):
    ax.fill_between(RATES, *np.transpose([one.interval for one in found]), color=colour, alpha=0.13, linewidth=0)
    ax.plot(RATES, [one.accuracy for one in found], color=colour)
    ax.plot(RATES, truths[name], "o", color=colour, markeredgecolor="white", markersize=7)
    ax.text(RATES[-1] + 0.004, found[-1].accuracy, name, color=colour, va="center", weight="bold")
ax.text(0.001, 0.56, "lines and bands: estimates without labels\ndots: the truth", color=QUIET)
ax.set(xlim=(-0.004, 0.25), xticks=RATES[RATES != 0.02], xlabel="share of letters mistyped", ylabel="accuracy")
ax.xaxis.set_label_coords(0.41, -0.12)
for axis in (ax.xaxis, ax.yaxis):
    axis.set_major_formatter(lambda value, _: f"{value:.0%}")
samples.axis("off")
for line, rate in enumerate([0, 0.09, 0.2]):
    sentence = mistyped("compute the cholesky decomposition of a matrix", rate, seed=11)
    samples.text(0, 0.8 - 0.38 * line, f"{rate:>4.0%}  {sentence}", family="monospace", color=QUIET)
plt.show()

# %% [markdown]
# The ranking is right from the first typo on, and the estimates for pieces of words are within two points. For whole
# words they are too optimistic by up to nine points, just inside the interval: a mistyped word is a word that the
# classifier has never seen, so that it decides by the few that are left, and does not doubt enough.
