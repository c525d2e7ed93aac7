"""Replace the features of a dataset by vectors of its texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cglsuite.base.embeddings import embed
from cglsuite.base.errors import NotApplicable
from cglsuite.cells.code.sources import closure_digest
from cglsuite.graphs.attributed import AttributedNodeData, encoded

if TYPE_CHECKING:
    from cglsuite.base.datafiles import DataRoot
    from cglsuite.graphs import NodeData
    from cglsuite.host import Catalogue

_PROVENANCE = ("model", "revision", "tokens", "licence", "home", "cutoff")


def with_text_features(catalogue: Catalogue, name: str, data: NodeData, root: DataRoot) -> tuple[NodeData, dict[str, Any]]:
    """Return a dataset whose features are vectors of its texts, and facts for records: the encoder, its model, and the vectors' digest.

    Args:
        name: the encoder's name in the catalogue.
        data: the dataset, with texts. Its features are not used.
        root: its cache stores the vectors.

    Raises:
        NotApplicable: the dataset has no texts. DataError: the encoder returns something else than finite vectors.
        What the encoder raises.
    """
    if not isinstance(data, AttributedNodeData):
        raise NotApplicable(f"scenario.features = text:{name}: the nodes of {data.name} have no texts")
    entry = catalogue.get("encoder", name)
    spec = catalogue.encoder(name)
    made_by = {"name": name, "provider": entry.record.distribution} | {key: getattr(spec, key) for key in _PROVENANCE[:3]}
    identity = made_by | {"source": closure_digest((spec.factory,))}
    vectors = embed(root, data.text, identity, lambda: catalogue.resolve(entry)(root), fitted=spec.fitted)
    facts = made_by | {key: getattr(spec, key) for key in _PROVENANCE[3:]} | {"sha256": vectors.sha256}
    return encoded(data, vectors.x), {key: value for key, value in facts.items() if value not in ("", None)}
