"""Registers the encoders. Does not import torch."""

from __future__ import annotations

from cglsuite import EncoderSpec, hookimpl
from cglsuite.specs import Citation

API_VERSION = 1  # the version of the plugin interface


@hookimpl
def cglsuite_encoders() -> list[EncoderSpec]:
    """Register all-MiniLM-L6-v2 and WordLlama."""
    return [
        EncoderSpec(
            name="minilm",
            summary="all-MiniLM-L6-v2: 384 columns, mean-pooled unit rows, 64 tokens at most",
            citation=Citation(
                authors=("Reimers", "Gurevych"),
                title="Sentence-BERT: Sentence Embeddings Using Siamese BERT-Networks",
                year=2019,
                booktitle="EMNLP",
            ),
            factory="cglsuite_text.models:minilm",
            model="sentence-transformers/all-MiniLM-L6-v2",
            revision="sha256 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            tokens=64,
            licence="Apache-2.0",
            home="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
            cutoff="2021",
        ),
        EncoderSpec(
            name="wordllama",
            summary="WordLlama: 256 columns, averages of static token vectors taken from language models, unit rows",
            citation=Citation(
                authors=("Miller",),
                title="WordLlama: Recycled Token Embeddings from Large Language Models",
                year=2024,
                note="https://github.com/dleemiller/wordllama",
            ),
            factory="cglsuite_text.models:wordllama",
            model="l2_supercat_256",
            revision="sha256 64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            licence="MIT",
            home="https://github.com/dleemiller/wordllama",
        ),
    ]
