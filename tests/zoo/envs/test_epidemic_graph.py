"""Is the network of an epidemic the one that was asked for?"""

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sb3_fair.zoo.envs.epidemic.graph import DENSE, network

FIRST = [0, 1, 3, 4, 5, 6, 7, 10, 11, 12, 13, 16, 17, 19, 21]


def test_the_karate_club_falls_into_the_communities_of_girvan_and_newman():
    club = network()
    assert club.adjacency.shape == (34, 34) and club.adjacency.sum() == 2 * 78
    assert_array_equal(np.flatnonzero(club.communities == 0), FIRST)
    assert np.count_nonzero(club.communities == 1) == 19
    assert_array_equal(club.degrees[[0, 33, 32]], [16, 17, 12])
    assert club.names == ("community 0", "community 1")
    assert network() is club


def test_weights_loops_and_double_edges_do_not_matter():
    graph = nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c"), ("c", "c")])
    graph.add_edge("a", "d", weight=0.1)
    expected = [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]
    for source in (graph, np.array(expected) * -2.5 + np.eye(4), expected, sparse.coo_matrix(expected)):
        made = network(source, ["x", "y", "y", "x"])
        assert_array_equal(made.adjacency, expected)
        assert_array_equal(made.degrees, [2, 2, 1, 1])
        assert_array_equal(made.communities, [0, 1, 1, 0])
        assert made.names == ("x", "y")
    twice = sparse.coo_array((np.ones(4), ([0, 0, 1, 1], [1, 1, 0, 0])), shape=(2, 2))
    assert_array_equal(network(twice, [0, 1]).adjacency, [[0, 1], [1, 0]])


def test_a_disconnected_graph_has_as_many_communities_as_girvan_and_newman_leave():
    made = network(nx.disjoint_union(nx.path_graph(2), nx.path_graph(4)))
    assert_array_equal(made.communities, [0, 0, 1, 1, 2, 2])


def test_large_graphs_with_few_edges_are_sparse_and_others_are_not():
    half = [0, 1] * DENSE
    assert sparse.issparse(network(nx.path_graph(2 * DENSE), half).adjacency)
    assert isinstance(network(np.ones((2 * DENSE, 2 * DENSE)), half).adjacency, np.ndarray)
    assert isinstance(
        network(sparse.csr_array(nx.to_scipy_sparse_array(nx.path_graph(4))), [0, 0, 1, 1])[0], np.ndarray
    )


@pytest.mark.parametrize(
    "graph, communities, error, message",
    [
        (nx.DiGraph([(0, 1)]), [0, 1], ValueError, "graph must be undirected, got DiGraph"),
        ([[0, 1], [0, 0]], [0, 1], ValueError, "graph must be undirected, got an adjacency matrix that is not symm"),
        ([[0, 1, 1]], [0, 1], ValueError, r"square matrix, got one of shape \(1, 3\)"),
        (nx.empty_graph(1), [0], ValueError, "at least two nodes"),
        (nx.Graph(), [], ValueError, "at least two nodes"),
        ([[0, np.nan], [np.nan, 0]], [0, 1], ValueError, "finite numbers"),
        ("karate", None, TypeError, "graph must be a networkx graph or a matrix of numbers, got 'karate'"),
        ([[0, 1], [1]], [0, 1], TypeError, "graph must be a networkx graph or a matrix of numbers, got"),
        (None, [0, 1], ValueError, "a whole number for each of 34 nodes"),
        (None, [0.5] * 34, ValueError, "communities must be a name or a whole number"),
        (None, ["x"] * 34, ValueError, "communities must be at least two different ones, got 'x' for every node"),
    ],
)
def test_graphs_and_communities_that_do_not_fit_are_errors(graph, communities, error, message):
    with pytest.raises(error, match=message):
        network(graph, communities)
