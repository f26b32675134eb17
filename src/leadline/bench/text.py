"""DistilBERT for the suites of texts; needs transformers, which is asked for only here."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from leadline.bench.optional import need

MAX_TOKENS = 512
_CHECKPOINT = "distilbert-base-uncased"


class DistilBert(nn.Module):
    """DistilBERT-base-uncased with a classification head; takes lists of texts.

    Parameters
    ----------
    n_classes
        Number of logits.
    """

    def __init__(self, n_classes: int) -> None:
        """Load the pretrained body and its tokens."""
        super().__init__()
        transformers = need("transformers", "DistilBERT")
        self._tokens: Any = transformers.AutoTokenizer.from_pretrained(_CHECKPOINT)
        self.body: Any = transformers.AutoModelForSequenceClassification.from_pretrained(
            _CHECKPOINT, num_labels=n_classes
        )

    def forward(self, texts: list[str]) -> Tensor:
        """Map texts to logits (n, n_classes)."""
        device = next(self.parameters()).device
        tokens = self._tokens(texts, padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
        logits: Tensor = self.body(**tokens.to(device)).logits
        return logits
