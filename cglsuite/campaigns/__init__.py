"""Campaigns: a file that describes many cells, and their plans, searches and task orders. Importing the package does not import torch."""

from __future__ import annotations
