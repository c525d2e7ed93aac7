"""Measures for queries that contain items of unseen classes. They score all test items of a stage together.

``Answered.y`` has the classes (int64 [n]); items are unknown if their class is not among ``Answered.outputs``. ``Answered.answers`` is
float32 [n, 2]: the predicted class, or -1 if the item was rejected; and the confidence that the item belongs to a seen class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, matthews_corrcoef, roc_auc_score

from cglsuite.streams.measures.answered import Answered

UNKNOWN = -1
"""The predicted class of a rejected item."""


def open_f1(answered: Answered) -> float:
    """Return the macro F1 over the seen classes and the class of unknown items (Open-F1 of Galke et al., Neural Networks 2023)."""
    unknown = _unknown(answered)
    truth = np.where(unknown, UNKNOWN, answered.y.numpy())
    return float(f1_score(truth, answered.answers[:, 0].numpy().astype(np.int64), average="macro", zero_division=0.0))


def rejection_mcc(answered: Answered) -> float:
    """Return Matthews' correlation coefficient between being unknown and being rejected; 0 if all items are treated alike."""
    return float(matthews_corrcoef(_unknown(answered), answered.answers[:, 0].numpy() == UNKNOWN))


def rejection_auroc(answered: Answered) -> float:
    """Return the probability that an unknown item has a lower confidence than a known one. It depends on no threshold."""
    return float(roc_auc_score(_unknown(answered), -answered.answers[:, 1].numpy()))


def _unknown(answered: Answered) -> NDArray[np.bool_]:
    """Whether each item belongs to an unseen class: bool [n]."""
    return (~answered.outputs[answered.y]).numpy()
