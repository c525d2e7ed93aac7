"""Campaigns: files that describe many cells, and the plans, searches and task orders derived from them. Importing the package does not
import torch.
"""

from __future__ import annotations
