"""Contact graph and communities of epidemic control."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

DENSE = 256
"""Up to so many nodes the product with a dense adjacency matrix is the faster one, also if there are few edges."""


class Network(NamedTuple):
    """An undirected graph in which every node belongs to one community.

    :param adjacency: (nodes, nodes) float32, 1 where there is an edge; a scipy.sparse CSR array if that is faster
    :param degrees: (nodes,) int64
    :param communities: (nodes,) int64, codes 0, 1, ...
    :param names: of the communities
    """

    adjacency: Any
    degrees: NDArray[np.int64]
    communities: NDArray[np.int64]
    names: tuple[str, ...]


def network(graph: Any = None, communities: Any = None) -> Network:
    """The network on which an epidemic runs; edge weights and loops do not matter.

    :param graph: an undirected networkx graph, whose nodes are numbered in its order; or a symmetric adjacency matrix
        (nodes, nodes), dense or scipy.sparse; None: Zachary's karate club
    :param communities: a label per node, of which there are at least two different ones; None: the first split that
        the algorithm of Girvan and Newman finds, which takes minutes on some hundred nodes. Communities are then
        numbered by their lowest nodes
    :raises TypeError: if ``graph`` is neither a graph nor a matrix
    :raises ValueError: if it is directed, not square or has fewer than two nodes, or the labels do not fit
    """
    return _karate_club() if graph is None and communities is None else _network(graph, communities)


@cache
def _karate_club() -> Network:
    return _network(None, None)


def _network(graph: Any, communities: Any) -> Network:
    edges = _edges(graph)
    nodes = edges.shape[0]
    if communities is None:
        codes = _first_split(edges)
        names = [f"community {code}" for code in range(codes.max() + 1)]
    else:
        codes, names = _labelled(communities, nodes)
    degrees = np.asarray(edges.sum(axis=1)).ravel().astype(np.int64)
    adjacency = edges if nodes > DENSE and edges.nnz < 0.1 * nodes**2 else edges.toarray()
    for array in (adjacency, degrees, codes):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False  # the karate club is shared
    return Network(adjacency, degrees, codes, tuple(names))


def _edges(graph: Any) -> Any:
    """CSR array (nodes, nodes) of float32: 1 for an edge, nothing on the diagonal."""
    if graph is None or hasattr(graph, "is_directed"):
        import networkx  # slow to import

        graph = networkx.karate_club_graph() if graph is None else graph
        if graph.is_directed():
            raise ValueError(f"graph must be undirected, got {graph}; see its method to_undirected()")
        matrix = networkx.to_scipy_sparse_array(graph, weight=None, format="csr") if len(graph) else np.zeros((0, 0))
    else:
        try:
            matrix = graph if sparse.issparse(graph) else np.asarray(graph)
        except ValueError:  # rows of different lengths
            matrix = np.array("")
        if matrix.dtype.kind not in "biuf":
            raise TypeError(f"graph must be a networkx graph or a matrix of numbers, got {graph!r}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise ValueError(f"graph must have at least two nodes and a square matrix, got one of shape {matrix.shape}")
    found = sparse.coo_array(matrix)
    if not np.isfinite(found.data).all():
        raise ValueError("graph must be an adjacency matrix of finite numbers, got one with nan or inf")
    between = (found.data != 0) & (found.row != found.col)
    ends = found.row[between], found.col[between]
    edges = sparse.csr_array((np.ones(len(ends[0]), np.float32), ends), found.shape)
    edges.data[:] = 1  # edges that were given twice
    if (edges != edges.T).nnz:
        raise ValueError("graph must be undirected, got an adjacency matrix that is not symmetric")
    return edges


def _first_split(edges: Any) -> NDArray[np.int64]:
    import networkx  # slow to import

    split = next(networkx.community.girvan_newman(networkx.from_scipy_sparse_array(edges)))
    codes = np.empty(edges.shape[0], dtype=np.int64)
    for code, members in enumerate(sorted(split, key=min)):
        codes[list(members)] = code
    return codes


def _labelled(communities: Sequence[Any], nodes: int) -> tuple[NDArray[np.int64], list[str]]:
    try:
        labels = np.asarray(communities)
    except ValueError:  # lists of different lengths
        labels = np.empty(())
    if labels.shape != (nodes,) or labels.dtype.kind not in "biuU":
        raise ValueError(f"communities must be a name or a whole number for each of {nodes} nodes, got {communities!r}")
    known, codes = np.unique(labels, return_inverse=True)
    if len(known) < 2:
        raise ValueError(f"communities must be at least two different ones, got {known[0].item()!r} for every node")
    names = [label if isinstance(label, str) else f"community {label}" for label in known.tolist()]
    return codes.astype(np.int64), names
