"""Rehearsal methods, which replay a memory of past items; continual-gnn also adds a penalty."""

from __future__ import annotations

from dataclasses import replace

from cglsuite import Hyperparameter, MethodSpec
from cglsuite.specs import SETTINGS, Citation
from cglsuite_methods.specs.shared import CHUNK, FISHER, ITEMS, LEVELS, MEMORY, NEIGHBOURHOOD, TASK_FREE

_FAN_OUT = Hyperparameter(
    name="fan_out",
    default=5,
    minimum=1,
    doc="neighbours kept per node and hop in a stored subgraph",
    effect="more neighbours: replayed centres see more of their original neighbourhood, but fewer centres fit a node budget",
)
_HOPS = Hyperparameter(
    name="hops",
    default=2,
    minimum=1,
    doc="radius of a stored subgraph, in hops",
    effect="fewer hops than backbone layers: replayed centres see less of their neighbourhood, but more centres fit a node budget",
)
_CENTRES_ONLY = Hyperparameter(
    name="centres_only",
    default=False,
    doc="as implemented by DRIFT for SSM: the memory's capacity counts only centres, not their neighbours",
    effect="the memory holds up to 31 times as many nodes (two hops of five) as that of a method that stores single nodes",
)

_ER_GNN = (
    Hyperparameter(name="per_class", default=10, minimum=1, doc="number of nodes to store per class"),
    Hyperparameter(
        name="sampler",
        default="cm",
        choices=("mf", "mf+", "cm", "cm+", "random"),
        doc="nearest to the class mean (mf), coverage maximisation (cm), on embeddings (+), or random",
    ),
    Hyperparameter(name="distance", default=0.5, minimum=0, doc="radius d of coverage maximisation"),
    Hyperparameter(
        name="candidates", default=1000, minimum=1, doc="maximum number of nodes per class that coverage maximisation considers"
    ),
    Hyperparameter(name="swap_weights", default=False, doc="as implemented by BeGin: (1 - β) L + β L_B"),
    Hyperparameter(name="neighbourhood", default=False, doc="as implemented by BeGin: replayed nodes are embedded in the current graph"),
)

REHEARSAL = (
    MethodSpec(
        name="er-gnn",
        levels=LEVELS,
        summary="experience replay of selected nodes",
        citation=Citation(
            authors=("Zhou", "Cao"),
            title="Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience Replay",
            year=2021,
            booktitle="AAAI",
        ),
        factory="cglsuite_methods.rehearsal.er_gnn:ERGNN",
        category="Rep",
        needs=("task-boundaries",),
        hyperparameters=_ER_GNN,
    ),
    MethodSpec(
        name="cat",
        levels=("NC", "LC"),
        labels=("single",),
        summary="condenses each task into a few synthetic items without edges, and trains on those of all tasks alone",
        citation=Citation(
            authors=("Liu", "others"), title="CaT: Balanced Continual Graph Learning with Graph Condensation", year=2023, booktitle="ICDM"
        ),
        factory="cglsuite_methods.rehearsal.cat:CaT",
        category="Rep",
        needs=("task-boundaries", "epochs"),
        hyperparameters=(
            Hyperparameter(
                name="per_task",
                default=100,
                minimum=1,
                doc="condensed items per task, at most an equal share of the scenario's budget, at least one per class",
            ),
            Hyperparameter(
                name="as_begin",
                default=False,
                doc="as implemented by BeGin: the encoder keeps its batch norm, classes are weighted by their size, condensed features are "
                "free in length, and losses of items are weighted by the task's size",
                effect="true: condensed features grow far beyond real ones, and accuracies become lower",
            ),
        ),
    ),
    MethodSpec(
        name="puma",
        levels=("NC", "LC"),
        labels=("single",),
        summary="condenses each task with the help of unlabelled items, and trains a new model on the condensed items of all tasks",
        citation=Citation(
            authors=("Liu", "Qiu", "Tang", "Yin", "Huang"),
            title="PUMA: Efficient Continual Graph Learning for Node Classification with Graph Condensation",
            year=2024,
            journal="TKDE",
            arxiv="2312.14439",
        ),
        factory="cglsuite_methods.rehearsal.puma:PUMA",
        category="Rep",
        needs=("task-boundaries", "epochs"),
        hyperparameters=(
            Hyperparameter(
                name="per_task",
                default=100,
                minimum=1,
                doc="condensed items per task, at most an equal share of the scenario's budget, at least one per class",
            ),
            Hyperparameter(name="encoders", default=100, minimum=1, doc="number of random encoders used to condense a task"),
            Hyperparameter(
                name="steps",
                default=10,
                minimum=1,
                doc="steps with each encoder; they do not count as the protocol's epochs",
                effect="more encoders or steps: condensed items represent the task better, at a proportional cost",
            ),
            Hyperparameter(name="width", default=4096, minimum=1, doc="number of units of an encoder"),
            Hyperparameter(name="hops", default=1, minimum=0, doc="number of propagation steps before an encoder"),
            Hyperparameter(
                name="feature_lr",
                default=1e-3,
                minimum=0,
                doc="learning rate of the condensed items' features (Adam)",
                effect="larger: features move further from those of the real items they start from",
            ),
            Hyperparameter(
                name="confidence",
                default=0.0,
                minimum=0,
                maximum=1,
                doc="minimum softmax output for an unlabelled item to count as an item of its predicted class",
                effect="larger: fewer unlabelled items, but more of them belong to their predicted class",
            ),
        ),
    ),
    MethodSpec(
        name="delome",
        levels=("NC", "LC"),
        labels=("single",),
        summary="learns a few synthetic items that give the gradients of a task's real ones, and replays them with a debiased loss",
        citation=Citation(
            authors=("Niu", "Pang", "Chen", "Liu"),
            title="Graph Continual Learning with Debiased Lossless Memory Replay",
            year=2024,
            booktitle="ECAI",
            arxiv="2404.10984",
        ),
        factory="cglsuite_methods.rehearsal.delome:DeLoMe",
        category="Rep",
        needs=("task-boundaries", "epochs"),
        hyperparameters=(
            Hyperparameter(
                name="per_class",
                default=60,
                minimum=1,
                doc="synthetic items per class of a task; if the scenario has a budget, at most an equal share of it",
            ),
            Hyperparameter(
                name="draws",
                default=900,
                minimum=1,
                doc="number of steps that learn a task's synthetic items, each with new random weights; they do not count as epochs of "
                "the protocol",
                effect="more: items reproduce the gradients of real ones better, at a proportional cost",
            ),
            Hyperparameter(
                name="feature_lr",
                default=1e-4,
                minimum=0,
                doc="learning rate of the synthetic items' features (Adam)",
                effect="larger: features move further from those of the real items they start from; 0: real items are replayed",
            ),
            Hyperparameter(name="hops", default=2, minimum=0, doc="propagation steps k of the SGC whose gradients are matched"),
            Hyperparameter(
                name="hidden",
                default=256,
                minimum=0,
                doc="hidden units (ReLU) of this SGC, as in the authors' code; 0 = linear",
            ),
            Hyperparameter(
                name="tau",
                default=1.0,
                minimum=0,
                doc="strength τ of the debiasing: outputs are trained with τ log π added, where π are the class shares in the task and "
                "the memory",
                effect="larger: rare classes, such as those in the memory, are predicted more often; 0: the usual cross-entropy",
            ),
        ),
    ),
    MethodSpec(
        name="continual-gnn",
        levels=LEVELS,
        summary="replays a class-proportional memory and the old items that new data affects most, with an EWC penalty",
        citation=Citation(
            authors=("Wang", "others"), title="Streaming Graph Neural Networks via Continual Learning", year=2020, booktitle="CIKM"
        ),
        factory="cglsuite_methods.rehearsal.continual_gnn:ContinualGNN",
        category="Reg+Rep",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="memory",
                default=500,
                minimum=1,
                doc="total number of items to store from all past tasks, at most the scenario's budget",
            ),
            Hyperparameter(name="replayed", default=250, minimum=1, doc="maximum number of memory items to replay with a task"),
            Hyperparameter(
                name="changed_share",
                default=0.5,
                minimum=0,
                maximum=1,
                doc="share of replayed items whose embeddings the new graph changes most; the rest are random",
            ),
            Hyperparameter(name="lambda", default=80.0, minimum=0, doc="weight λ of the EWC penalty"),
            FISHER,
            CHUNK,
            Hyperparameter(name="without_ewc", default=False, doc="as implemented by BeGin: the EWC penalty is never applied"),
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="er",
        elsewhere=("replay",),
        levels=ITEMS,
        settings=TASK_FREE,
        summary="experience replay from a reservoir: every batch is joined by as many stored items",
        citation=Citation(
            authors=("Chaudhry", "others"), title="On Tiny Episodic Memories in Continual Learning", year=2019, arxiv="1902.10486"
        ),
        factory="cglsuite_methods.rehearsal.task_free.er:ER",
        category="Rep",
        hyperparameters=(MEMORY, NEIGHBOURHOOD),
    ),
    MethodSpec(
        name="der++",
        levels=LEVELS,
        settings=SETTINGS,
        summary="dark experience replay: stored outputs should stay, and stored labels are learnt again",
        citation=Citation(
            authors=("Buzzega", "others"),
            title="Dark Experience for General Continual Learning: a Strong, Simple Baseline",
            year=2020,
            booktitle="NeurIPS",
        ),
        factory="cglsuite_methods.rehearsal.task_free.der:DERPlusPlus",
        category="Rep",
        hyperparameters=(
            replace(MEMORY, default=200),
            Hyperparameter(
                name="alpha",
                default=0.1,
                minimum=0,
                doc="weight α of the distance to stored outputs; the paper searches 0.1, 0.2, 0.5",
                effect="larger: outputs of stored items change less, which slows down both forgetting and learning",
            ),
            Hyperparameter(
                name="beta",
                default=0.5,
                minimum=0,
                doc="weight β of the loss on stored labels; the paper searches 0.5 and 1; 0 = DER",
                effect="larger: stored labels count more, which corrects outputs stored by a poorly trained model",
            ),
            NEIGHBOURHOOD,
        ),
    ),
    MethodSpec(
        name="er-ace",
        levels=("NC", "LC", "GC"),
        labels=("single",),
        settings=SETTINGS,
        elsewhere=("replay",),
        summary="experience replay with asymmetric cross-entropy: new items compete among the classes of their batch only",
        citation=Citation(
            authors=("Caccia", "others"),
            title="New Insights on Reducing Abrupt Representation Change in Online Continual Learning",
            year=2022,
            booktitle="ICLR",
        ),
        factory="cglsuite_methods.rehearsal.task_free.er_ace:ERACE",
        category="Rep",
        hyperparameters=(replace(MEMORY, default=200), NEIGHBOURHOOD),
    ),
    MethodSpec(
        name="gdumb",
        levels=LEVELS,
        summary="keeps a memory that is balanced among classes, and trains a new model on nothing else after each task",
        citation=Citation(
            authors=("Prabhu", "Torr", "Dokania"),
            title="GDumb: A Simple Approach that Questions Our Progress in Continual Learning",
            year=2020,
            booktitle="ECCV",
        ),
        factory="cglsuite_methods.rehearsal.gdumb:GDumb",
        category="baseline",
        needs=("task-boundaries", "epochs"),
        hyperparameters=(replace(MEMORY, default=200), NEIGHBOURHOOD),
    ),
    MethodSpec(
        name="ssrm",
        levels=("NC", "NR"),
        summary="er-gnn with a penalty on what the growth of the graph does to the representations of stored nodes",
        citation=Citation(
            authors=("Su", "Zou", "Zhang", "Wu"),
            title="Towards Robust Graph Incremental Learning on Evolving Graphs",
            year=2023,
            booktitle="ICML",
        ),
        factory="cglsuite_methods.rehearsal.ssrm:SSRM",
        category="Reg+Rep",
        needs=("task-boundaries",),
        hyperparameters=(
            *_ER_GNN,
            Hyperparameter(
                name="lambda",
                default=1.0,
                minimum=0,
                doc="weight λ of the squared MMD between stored nodes in the graph before and now; 0 = er-gnn",
                effect="larger: embeddings depend less on arriving neighbours; no effect if the graph does not grow",
            ),
            Hyperparameter(
                name="kernel",
                default="gaussian",
                choices=("gaussian", "three-gaussians"),
                doc="kernel of the MMD: a Gaussian, or (as in the authors' code) the sum of three with fixed widths",
            ),
            Hyperparameter(
                name="bandwidth",
                default=None,
                kind=float,
                optional=True,
                minimum=1e-6,
                doc="standard deviation of the Gaussian, none = the median distance between embeddings; not used by three-gaussians",
            ),
        ),
    ),
    MethodSpec(
        name="icarl",
        levels=("NC", "LC", "GC"),
        labels=("single",),
        summary="exemplars chosen by herding, the nearest mean of exemplars, and distillation of old outputs",
        citation=Citation(
            authors=("Rebuffi", "Kolesnikov", "Sperl", "Lampert"),
            title="iCaRL: Incremental Classifier and Representation Learning",
            year=2017,
            booktitle="CVPR",
        ),
        factory="cglsuite_methods.rehearsal.icarl:ICaRL",
        category="Reg+Rep",
        needs=("task-boundaries",),
        hyperparameters=(replace(MEMORY, default=200), NEIGHBOURHOOD),
    ),
    MethodSpec(
        name="ssm",
        levels=ITEMS,
        settings=SETTINGS,
        summary="sparsified subgraph memory: stores nodes with a sample of their neighbours",
        citation=Citation(
            authors=("Zhang", "others"),
            title="Sparsified Subgraph Memory for Continual Graph Representation Learning",
            year=2022,
            booktitle="ICDM",
        ),
        factory="cglsuite_methods.rehearsal.task_free.ssm:SSM",
        category="Rep",
        hyperparameters=(
            MEMORY,
            _FAN_OUT,
            _HOPS,
            Hyperparameter(
                name="neighbours",
                default="degree",
                choices=("degree", "uniform"),
                doc="how to sample the neighbours to keep: in proportion to degree, or uniformly",
                effect="degree: favours hubs, which many centres share; uniform: matches neighbour sampling in training",
            ),
            _CENTRES_ONLY,
        ),
    ),
    MethodSpec(
        name="sem",
        levels=ITEMS,
        settings=SETTINGS,
        summary="subgraph memory sparsified by curvature: stored nodes keep their edges of highest Ricci curvature",
        citation=Citation(
            authors=("Zhang", "others"),
            title="Ricci Curvature-Based Graph Sparsification for Continual Graph Representation Learning",
            year=2023,
            journal="TNNLS",
        ),
        factory="cglsuite_methods.rehearsal.task_free.sem:SEM",
        category="Rep",
        hyperparameters=(
            MEMORY,
            _FAN_OUT,
            _HOPS,
            Hyperparameter(
                name="curvature",
                default="forman",
                choices=("forman", "ollivier", "overlap", "overlap-with-larger"),
                doc="Forman's (closed form), Ollivier's (optimal transport, needs cglsuite-methods[curvature]), or the overlap of the "
                "neighbourhoods: their Jaccard index, or (as implemented by DRIFT) (common + 1) / (larger + 1)",
                effect="selects the edges to keep: forman depends on degrees and favours sparse neighbourhoods; ollivier takes about a "
                "hundred times as long; overlap ranks by common neighbours; overlap-with-larger prefers small neighbourhoods where ends "
                "share no neighbour",
            ),
            _CENTRES_ONLY,
        ),
    ),
    MethodSpec(
        name="pdgnns-tem",
        levels=("NC",),
        labels=("single",),
        summary="stores propagated features, which stand for a node's neighbourhood, and trains a network without edges on them",
        citation=Citation(
            authors=("Zhang", "Song", "Chen", "Tao"),
            title="Topology-aware Embedding Memory for Continual Learning on Expanding Networks",
            year=2024,
            booktitle="KDD",
        ),
        factory="cglsuite_methods.rehearsal.pdgnns_tem:PDGNNsTEM",
        category="Rep",
        needs=("task-boundaries",),
        hyperparameters=(
            Hyperparameter(
                name="per_class",
                default=400,
                minimum=1,
                doc="rows to store per class, at most an equal share of the scenario's budget for every task",
                effect="more: less forgetting, at F floats per row; on small datasets, 400 rows are all items",
            ),
            Hyperparameter(
                name="sampler",
                default="degree",
                choices=("degree", "coverage", "uniform"),
                doc="what the probability of storing a row is proportional to: in-degree (the authors' default), number of nodes within "
                "k hops, or nothing",
                effect="degree and coverage: the memory represents more nodes, and favours hubs",
            ),
            Hyperparameter(name="hops", default=2, minimum=1, doc="number k of propagation steps", effect="more: smoother features"),
            Hyperparameter(
                name="restart",
                default=0.05,
                minimum=0,
                maximum=1,
                doc="share α of a node's own features in each step; 0 = S^kX",
                effect="larger: less smoothing",
            ),
            Hyperparameter(
                name="width", default=256, minimum=1, doc="number of hidden units of the network", effect="more: a finer boundary"
            ),
            Hyperparameter(
                name="as_authors",
                default=False,
                doc="as in the authors' code: in class-IL the current task's stored rows are replayed as well, from its second epoch",
                effect="true: stored items of the current task count twice",
            ),
        ),
    ),
    MethodSpec(
        name="dmsg",
        levels=ITEMS,
        settings=TASK_FREE,
        summary="diversified memory selection, replayed as embeddings synthesised by a variational layer",
        citation=Citation(
            authors=("Qiao", "others"),
            title="Towards Continuous Reuse of Graph Models via Holistic Memory Diversification",
            year=2025,
            booktitle="ICLR",
        ),
        factory="cglsuite_methods.rehearsal.task_free.dmsg:DMSG",
        category="Rep",
        hyperparameters=(
            MEMORY,
            Hyperparameter(
                name="inter",
                default=1.0,
                minimum=0,
                doc="selection weight of the distance to other classes",
                effect="larger: selects easy items far from other classes rather than items that cover their own class",
            ),
            Hyperparameter(
                name="reconstruction",
                default=0.1,
                minimum=0,
                doc="weight λ_r of predicting which items share a class",
                effect="larger: synthesised embeddings of a class are closer together",
            ),
            Hyperparameter(
                name="kl",
                default=0.1,
                minimum=0,
                doc="weight λ_kl of the divergence from a standard normal",
                effect="larger: smaller embeddings with more variation; 0: the variation vanishes, which reduces to plain replay",
            ),
            Hyperparameter(
                name="adversarial",
                default=0.1,
                minimum=0,
                doc="weight λ_a of the discriminator's loss",
                effect="larger: synthesised embeddings stay closer to real ones",
            ),
            Hyperparameter(
                name="replay_weight",
                default=1.0,
                minimum=0,
                doc="weight of the loss of replayed embeddings; as implemented by DRIFT: 20",
                effect="larger: the memory outweighs the batch, so less is forgotten and new classes are learnt more slowly",
                implicit=True,
            ),
            Hyperparameter(
                name="kl_unit",
                default="mean",
                choices=("mean", "bits"),
                doc="the divergence as the mean over coordinates, or (as implemented by DRIFT) as their sum in bits",
                effect="bits: larger by the width of the embedding over ln 2, so embeddings are pulled to a standard normal",
                implicit=True,
            ),
            Hyperparameter(
                name="selection",
                default="diverse",
                choices=("diverse", "max-min"),
                doc="reselect the whole memory for diversity, or (as implemented by DRIFT) pick half of each batch, the items furthest "
                "apart in softmax outputs, for a reservoir",
                effect="max-min: diversity only within a batch, whatever the classes; the memory is otherwise a random sample of the picks",
                implicit=True,
            ),
        ),
    ),
)
