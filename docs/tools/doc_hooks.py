"""What mkdocs calls while it builds the site: pages made of the catalogue are added, directives in pages expanded. Imports no torch."""

from __future__ import annotations

from functools import cache
from typing import Any

from doc_cards import dataset_path, method_path, pages, pretraining_path
from doc_directives import expanded
from doc_gallery import gallery_files
from doc_methods import cards
from mkdocs.structure.files import File, Files

from cglsuite import Catalogue, load_catalogue

__all__ = ["on_config", "on_files", "on_page_markdown"]

_PARTS = ("node", "methods", "metrics", "skeleton", "drift", "link", "graph", "slurm", "dask")
_PROVIDERS = ("cglsuite", *(f"cglsuite-{part}" for part in _PARTS))


@cache
def _catalogue() -> Catalogue:
    """The built-in plugins, whatever else is installed."""
    return load_catalogue(allow=_PROVIDERS, strict=True)


def on_config(config: Any) -> Any:
    """Put the generated pages into the navigation, where it says ``METHODS``, ``PRETRAININGS`` and ``DATASETS``."""
    found = {
        "METHODS": [{e.name: method_path(e.name)} for e in _catalogue().entries("method")],
        "PRETRAININGS": [{e.name: pretraining_path(e.name)} for e in _catalogue().entries("pretraining")],
        "DATASETS": [{e.name: dataset_path(e.name)} for e in _catalogue().entries("dataset")],
    }
    config.nav = _filled(config.nav, found)
    return config


def _filled(nav: Any, found: dict[str, Any]) -> Any:
    if isinstance(nav, list):
        return [_filled(part, found) for part in nav]
    if isinstance(nav, dict):
        return {title: _filled(part, found) for title, part in nav.items()}
    return found.get(nav, nav)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of specs, and the gallery's reports."""
    for path, content in (pages(_catalogue()) | cards(_catalogue())).items():
        files.append(File.generated(config, path, content=content))
    for place, path in gallery_files().items():
        files.append(File.generated(config, f"gallery/{place}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Expand the directives of a page."""
    return expanded(markdown, page.file.src_uri, _catalogue())
