"""What SB3 lacks for vector rewards: a monitor, evaluation, fronts and measures of fronts.

For algorithms that learn from the vectors in ``info["vector_reward"]``, which
:class:`~sb3_fair.wrappers.vector_reward.VecVectorReward` and ``objectives=`` of a registered ID make:

* ``vector_rewards``: the vectors (n, k) of one step, from its infos;
* ``objective_names``: the names of their k entries;
* ``VectorMonitor``: SB3's VecMonitor for vectors, which adds the vector return to ``info["episode"]``;
* ``evaluate_vector``: SB3's ``evaluate_policy`` for vectors, which makes an ``EvaluatedPolicy``;
* ``EvaluatedPolicy``: returns, lengths and fairness figures of a policy's episodes;
* ``Command``: the return and the horizon that a conditioned policy is asked for;
* ``front_of``: the evaluated policies that no other dominates;
* ``Front``: these, to be saved, loaded and read like a tuple;
* ``nondominated``, ``nondominated_ranks``: which points no other dominates, and which only those of lower ranks do;
* ``crowding_distance``: how far apart the neighbours of each point are;
* ``hypervolume``, ``sparsity``, ``generational_distance``, ``expected_utility``: how good the points of a front are;
* ``reference_point``: a point below all returns, for hypervolumes;
* ``misses``, ``epsilon_metric``: how far returns are from those that were asked for;
* ``min_max``: points with each objective scaled to [0, 1].

>>> import sb3_fair
>>> from sb3_fair.zoo.registry.rules import RuleAgent
>>> venv = sb3_fair.make_vec("sb3_fair/JobHiring-Small-v0", n_envs=2, objectives=("R", "SP"), emit="terminal")
>>> rules = ("hire-all", "reject-all")
>>> front = front_of(evaluate_vector(RuleAgent(rule, venv), venv, n_eval_episodes=2, name=rule) for rule in rules)
>>> front.objectives
('R', 'SP')
>>> bool(hypervolume(front.means, reference_point(front.means)) > 0)
True
"""

from sb3_fair.common.evaluation import evaluate_vector, objective_names
from sb3_fair.common.front import Command, EvaluatedPolicy, Front
from sb3_fair.common.monitor import VectorMonitor
from sb3_fair.common.pareto import (
    crowding_distance,
    epsilon_metric,
    expected_utility,
    front_of,
    generational_distance,
    hypervolume,
    min_max,
    misses,
    nondominated,
    nondominated_ranks,
    reference_point,
    sparsity,
)
from sb3_fair.wrappers.infos import vector_rewards

__all__ = [
    "Command",
    "EvaluatedPolicy",
    "Front",
    "VectorMonitor",
    "crowding_distance",
    "epsilon_metric",
    "evaluate_vector",
    "expected_utility",
    "front_of",
    "generational_distance",
    "hypervolume",
    "min_max",
    "misses",
    "nondominated",
    "nondominated_ranks",
    "objective_names",
    "reference_point",
    "sparsity",
    "vector_rewards",
]
