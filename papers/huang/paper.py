"""Where the tables and figures of this folder come from."""

from ..recipe import Paper

PAPER = Paper(
    "huang", "Huang, Zheng, King & Lyu", "Arbitrary Norm Support Vector Machines", "Neural Computation 21", 2009
)
