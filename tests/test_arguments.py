"""Is every wrong argument of what is public refused by name, at once and without much memory?"""

import contextlib
import io
import math
import resource
import signal
import subprocess
import sys
import warnings
from dataclasses import fields
from inspect import signature

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

import sb3_fair
from sb3_fair import fairness, wrappers
from sb3_fair.fairness import FairnessSpec, Scheme
from sb3_fair.fairness.arguments import checked
from sb3_fair.zoo.registry.registration import WORLDS

SECONDS = 1
MEMORY = 100 * 2**20

ACTIONS, GROUPS, FEATURES = [1, 0, 1], [0, 1, 0], [[0.0, 0.5], [1.0, 0.5], [0.2, 0.1]]
CHANCES = [[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]]
RETURNS = [8.0, 4.0, 5.0]
STATUS = [[[1.0, 0.0], [1.0, 1.0]]]


class Town(gym.Env):
    """One decision after the other, about people of two groups; rewards of two stakeholders."""

    observation_space = gym.spaces.Box(0, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, False, False, {"vector_reward": np.array([1.0, float(action)])}


class VectorTown(Town):
    reward_space = gym.spaces.Box(0, 1, (2,))
    reward_dim = 2


def group(obs, info):
    return int(obs[0] > 0)


SPEC = FairnessSpec(group=group)


def town():
    return gym.wrappers.TimeLimit(VectorTown(), 5)


def fair_town():
    return wrappers.FairMDP(town(), SPEC)


def remembering_town():
    scheme = Scheme(when="end")
    return wrappers.MemoryAugmentation(
        wrappers.FairnessScheme(town(), scheme, stakeholders=[0, 1]), "full+clock", high=5
    )


def batch(make=town):
    return lambda: DummyVecEnv([make])


def scored_batch():
    return wrappers.VecFairnessScheme(batch()(), Scheme(), stakeholders=[0, 1])


def fair_batch():
    return wrappers.VecFairMDP(batch()(), SPEC)


def rewarded_batch():
    return wrappers.VecVectorReward(fair_batch(), ["R", "SP"])


def some_memory():
    return wrappers.make_memory("full", [0, 1], 5)


# What is called, with arguments that are right; a function makes what every call wants anew.
FAIRNESS = {
    "DemographicParity": {},
    "DiscountedHistory": {},
    "Distance": {},
    "FairnessSpec": {"group": group},
    "FairnessTracker": {},
    "Formula": {"name": "sum", "title": "sum", "value": lambda: lambda u, welfare: u.sum(axis=-1)},
    "FullHistory": {},
    "NewMultiple": {"k": 12},
    "Scheme": {},
    "SchemeTracker": {"scheme": Scheme(), "n_copies": 2, "n": 2},
    "SlidingWindow": {},
    "Tracker": {"n": 2},
    "Welfare": {"name": "rawls"},
    "action_counts": {"actions": ACTIONS, "groups": GROUPS, "n_actions": 2},
    "action_frequencies": {"counts": [[1.0, 2.0]]},
    "average": {"values": RETURNS},
    "balance": {"status": STATUS},
    "chance_level": {"notion": "SP", "actions": ACTIONS, "groups": GROUPS, "n_permutations": 2},
    "conditional_disparity": {"returns": RETURNS, "groups": GROUPS, "factors": GROUPS},
    "consistency": {"features": FEATURES, "actions": ACTIONS},
    "count_status": {"actions": [[0, 1]], "stakeholders": [0, 1]},
    "counterfactual_disparity": {"factual": RETURNS, "counterfactual": RETURNS},
    "demographic_disparity": {"returns": RETURNS, "groups": GROUPS},
    "distance_matrix": {"features": FEATURES},
    "find_notion": {"name": "SP"},
    "find_welfare": {"welfare": "rawls"},
    "gini": {"returns": RETURNS},
    "group_notion": {"notion": "SP", "actions": ACTIONS, "feedback": None, "groups": GROUPS},
    "hellinger": {"p": [0.5, 0.5], "q": [0.2, 0.8]},
    "individual_fairness": {"features": FEATURES, "probabilities": CHANCES},
    "lipschitz_violation": {"features": FEATURES, "probabilities": CHANCES},
    "nash_welfare": {"returns": RETURNS},
    "overall_unfairness": {"status": STATUS},
    "pairwise_disparity": {"returns": RETURNS, "groups": GROUPS},
    "price_of_fairness": {"fair": RETURNS, "classic": RETURNS, "n_resamples": 10},
    "twin_disparity": {"factual": RETURNS, "counterfactual": RETURNS},
    "unfairness": {"status": STATUS},
    "value_disparity": {"values": RETURNS, "groups": GROUPS},
    "wasserstein_gap": {"first": RETURNS, "second": RETURNS},
}
WRAPPERS = {
    "Chebyshev": {"weights": [0.5, 0.5], "ideal": [1.0, 1.0]},
    "DesiredReturn": {"env": town, "desired_return": [1.0, 0.0], "desired_horizon": 3},
    "Disparity": {"env": fair_town},
    "FairMDP": {"env": town, "spec": SPEC},
    "FairnessScheme": {"env": town, "scheme": Scheme(), "stakeholders": [0, 1]},
    "GroupLabelObs": {"env": town, "group": 0},
    "GymnasiumVector": {"venv": batch()},
    "MemoryAugmentation": {"env": lambda: wrappers.FairnessScheme(town(), Scheme(), stakeholders=[0, 1]), "high": 5},
    "Recompute": {"memory": some_memory, "scheme": Scheme()},
    "Scalarise": {"env": lambda: wrappers.VectorReward(fair_town(), ["R", "SP"]), "weights": [1.0, 1.0]},
    "VecChoices": {"venv": batch()},
    "VecDesiredReturn": {"venv": batch(), "desired_return": [1.0, 0.0], "desired_horizon": 3},
    "VecDisparity": {"venv": fair_batch},
    "VecFairMDP": {"venv": batch(), "spec": SPEC},
    "VecFairnessScheme": {"venv": batch(), "scheme": Scheme(), "stakeholders": [0, 1]},
    "VecGroupLabelObs": {"venv": batch(), "group": [0]},
    "VecMemoryAugmentation": {"venv": scored_batch, "high": 5},
    "VecScalarise": {"venv": rewarded_batch, "weights": [1.0, 1.0]},
    "VecVectorReward": {"venv": fair_batch, "objectives": ["R", "SP"]},
    "VectorReward": {"env": fair_town, "objectives": ["R", "SP"]},
    "find_counterexample": {"env": remembering_town, "n_episodes": 1},
    "make_memory": {"memory": "full", "stakeholders": [0, 1], "maximum": 5},
}


def paying_town():
    return wrappers.VectorReward(fair_town(), ["R", "SP"])


ON_POLICY = {"policy": "MlpPolicy", "env": fair_town, "n_steps": 8, "batch_size": 4, "device": "cpu"}
ALGORITHMS = {
    "PPOLagrangian": ON_POLICY,
    "CounterfactualReplayBuffer": {
        "buffer_size": 10,
        "observation_space": gym.spaces.Dict({"memory": gym.spaces.Box(0, 5, (2,))}),
        "action_space": gym.spaces.Discrete(2),
        "memory": some_memory,
        "scheme": Scheme(),
    },
    "FPPO": ON_POLICY,
    "FairPPO": ON_POLICY,
    "FairQCM": {"policy": "MlpPolicy", "env": remembering_town, "buffer_size": 10, "device": "cpu"},
    "PCN": {"policy": "MlpPolicy", "env": paying_town, "device": "cpu"},
    "RecurrentDQN": {"policy": "MlpPolicy", "env": town, "buffer_size": 10, "device": "cpu"},
    "TabularFairQCM": {"env": remembering_town},
    "make_vec": {"env_id": "sb3_fair/JobHiring-Small-v0"},
    "evaluate": {"policy": "hire-all", "env": "sb3_fair/JobHiring-Small-v0", "n_episodes": 1},
}
# What is public, and takes no arguments that could be wrong.
LEFT_OUT = {
    "ConstrainedPPO": "a former name of PPOLagrangian",
    "DISTANCES NOTIONS WELFARES __version__": "tables, and a text",
    "Average Candidates CounterExample Estimate FairEvent Individual Price Values": "tuples that functions return",
    "Choice Choices": "an int, and an array of these, that the library makes on every step",
    "GroupNotion NeighbourNotion Notion PairNotion": "rows of a table of our own",
    "Interaction": "made on every step; the tracker that gets it checks what its notions need",
    "Measures Memory": "protocols",
    "VecStanding": "needs twins; its only argument is the environment",
    "load_agent": "reads the folder of a run, with a test of its own for wrong arguments",
    "register": "adds to a table, with a test of its own for wrong arguments",
    "augment": "takes what a memory made",
}


def given(arguments):
    return {name: value() if getattr(value, "__name__", "") in MAKERS else value for name, value in arguments.items()}


MAKERS = {
    "town",
    "fair_town",
    "remembering_town",
    "<lambda>",
    "scored_batch",
    "fair_batch",
    "rewarded_batch",
    "some_memory",
    "paying_town",
    "scheming_town",
}

WRONG = {
    "object": object(),
    "text": "no such thing",
    "list-of-text": ["no such thing"],
    "bytes": b"x",
    "None": None,
    "True": True,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "-1": -1,
    "-0.5": -0.5,
    "0": 0,
    "0.5": 0.5,
    "10**12": 10**12,
    "1e12": 1e12,
    "10**400": 10**400,
    "empty-text": "",
    "empty-list": [],
    "empty-dict": {},
    "list-of-objects": [object()],
    "list-of-nan": [math.nan],
    "nested-list": [[1], [1, 2]],
    "set": {1},
    "dict": {"no such thing": 1},
    "function": lambda *args: None,
    "class": object,
}
SHARES = (
    "gamma gae_lambda tau reg_gamma penalty_gamma massage_start initial_epsilon final_epsilon epsilon_decay "
    "exploration_fraction exploration_initial_eps exploration_final_eps"
)
LIMITS = "clip_range clip_range_vf target_kl reward_scale scaling_floor"
WEIGHTS = (
    "learning_rate vf_coef reg_lambda delta beta1 beta2 omega FairPPO.alpha beta lam tolerance FairPPO.threshold "
    "lam_eta lam_target lam_max multiplier_lr multiplier_damping max_multiplier noise crowding_threshold "
    "updates_per_step"
)
# Values that are right for some arguments, and why. What a type hint says is right (None, True or False, any text, any
# callable) need not be listed.
RIGHT = {
    "undefined": ("nan inf -inf -1 -0.5 0 0.5 10**12 1e12", "stands for what has no value"),
    "offset": ("-1 -0.5 0 0.5 10**12 1e12", "is added to amounts of any size"),
    "threshold": ("-1 -0.5 0 0.5 10**12 1e12", "negative: nothing is dropped; large: everything is"),
    "lam scale NewMultiple.k": ("0.5 10**12 1e12", "is a factor"),
    "Welfare.alpha factor gamma": ("0.5", "is a share or a power"),
    SHARES: ("0 0.5", "is a share of time, of probability or of what comes"),
    LIMITS: ("0.5 10**12 1e12", "is a limit or a scale"),
    WEIGHTS: ("0 0.5 10**12 1e12", "is a weight, or a step of any size"),
    "ent_coef cost_limit reward_floor ref_point eval_optimism initial_value": (
        "-1 -0.5 0 0.5 10**12 1e12",
        "has either sign",
    ),
    "n_updates n_counterfactual burn_in learning_starts eval_freq verbose": (
        "0",
        "of these there may be none",
    ),
    "eval_freq learning_starts": ("10**12 1e12 0.5", "may lie beyond the end of training"),
    "gradient_steps sde_sample_freq": ("-1 0", "-1 is one per step, or per rollout"),
    "policy_kwargs rollout_buffer_kwargs replay_buffer_kwargs critic_kwargs": (
        "empty-dict dict",
        "the class that gets them names the key",
    ),
    "max_grad_norm": ("inf 0.5 10**12 1e12", "is a limit; infinity is none"),
    "tensorboard_log": ("text empty-text", "is a folder"),
    "evaluate.name": ("text empty-text", "is a title"),
    "env env_id device cost policy": (
        "text empty-text",
        "Gymnasium, torch, SB3 or the env knows which there are",
    ),
    "exploration_decay": ("0.5", "is a factor"),
    "CounterfactualReplayBuffer.seed eval_optimism": ("empty-list", "may be a sequence"),
    "max_return scaling_floor held": ("empty-dict", "leaves out what has a default"),
    "massage_threshold": ("0 0.5", "is a difference between probabilities"),
    "max_return": ("inf -1 -0.5 0 0.5 10**12 1e12", "is a return; infinity is no bound"),
    "desired_horizon": ("10**12 1e12", "is as long as an episode may last"),
    "first_action": ("-1 0 10**12", "is where a space starts"),
    "GroupLabelObs.group": ("0 text empty-text", "is a number or the name of an attribute, which a reset may set"),
    "GroupLabelObs.group VecGroupLabelObs.group": ("function class", "is a callable"),
    "scheme": ("empty-dict", "has a default for everything"),
    "seed": ("0", "is any number that generators take"),
    "FairnessSpec.measures": (" ".join(WRONG), "is a scenario's own, which the algorithms that ask for it check"),
    "nominal sensitive notions attributes feature_names group_names": ("empty-list", "there need be none"),
    "attributes feature_names group_names FairnessSpec.group": ("list-of-text empty-dict", "are names"),
    "FairnessSpec.group evaluate.policy": ("function class", "is a callable"),
    "feedback average.values value_disparity.values": ("None list-of-nan", "is unknown for some or all"),
    "favourable": ("set", "has no order"),
    "group features feedback": ("text empty-text", "is the name of a key in info"),
    "groups compared": ("list-of-text list-of-objects list-of-nan nested-list empty-dict", "are labels of any kind"),
    "counts values actions": ("empty-list", "nobody was there"),
}


class TookTooLong(Exception):
    pass


@contextlib.contextmanager
def limits():
    """A second, and little more memory than there is in use."""

    def stop(*_):
        raise TookTooLong

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    handler, timer = signal.signal(signal.SIGALRM, stop), signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)  # pytest's own
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome(target, arguments, name, value):
    """None if the value is refused as it should be, else what happened."""
    try:
        made = {**given(arguments), name: value}
        with limits(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            target(**made)
    except (ValueError, TypeError) as error:
        words = str(error)
        return (
            None if name in words and "unexpected keyword" not in words else f"unclear: {type(error).__name__}: {words}"
        )
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def right(target, name, parameter):
    """The kinds of values that an argument may have."""
    hint = str(parameter.annotation).replace("numpy.__array_like", "")
    kinds = {
        kind for names, (kinds, _) in RIGHT.items() for kind in kinds.split() if {name, target} & set(names.split())
    }
    if "None" in hint or parameter.default is None:
        kinds.add("None")
    if "bool" in hint and "Buffer" not in hint:
        kinds.add("True")
    if "Callable" in hint:
        kinds |= {"function", "class"}
    if target.split(".")[0] == "Formula" and "str" in hint:
        kinds |= {"text", "empty-text"}
    return kinds


def refusals(room, table):
    """What is wrong with how wrong arguments are dealt with, and how many were tried."""
    found, tried = [], 0
    for name, arguments in table.items():
        target = getattr(room, name)
        target(**given(arguments))
        for argument, parameter in signature(target).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            allowed = right(f"{name}.{argument}", argument, parameter)
            for kind in WRONG.keys() - allowed:
                tried += 1
                problem = outcome(target, arguments, argument, WRONG[kind])
                if problem:
                    found.append(f"{name}({argument}={kind}): {problem[:200]}")
    return found, tried


ROOMS = {
    "fairness": (fairness, FAIRNESS, 3000),
    "wrappers": (wrappers, WRAPPERS, 1500),
    "algorithms": (sb3_fair, ALGORITHMS, 4000),
}


@pytest.mark.parametrize("room", ROOMS)
def test_wrong_arguments_are_refused_by_name(room):
    module, table, least = ROOMS[room]
    found, tried = refusals(module, table)
    assert not found, "\n".join(found)
    assert tried > least


def test_all_that_is_public_is_tried_or_left_out_for_a_reason():
    left_out = {name for names in LEFT_OUT for name in names.split()}
    for module, table, _ in ROOMS.values():
        assert set(module.__all__) - left_out == table.keys()


@pytest.mark.parametrize("number", [np.int64, np.int8, np.uint32])
def test_numpy_s_numbers_are_numbers(number):
    assert fairness.SlidingWindow(number(3)).window == 3
    assert fairness.Welfare("alpha_fair", alpha=np.float32(0.5)).alpha == 0.5
    fairness.FairnessTracker(k=number(3), n_actions=number(2), nominal=np.array([0]), undefined=np.float64("nan"))
    fairness.group_notion(
        "SP", actions=np.array(ACTIONS, dtype=number), feedback=[None, 1, np.nan], groups=np.array(["a", "b", "a"])
    )
    assert fairness.Scheme(restart=np.True_, when=["period", number(3)]).period == 3
    assert gym.make("sb3_fair/JobHiring-v0", bias=number(1)).get_wrapper_attr("config").bias == 1


def test_numpy_s_numbers_are_passed_on_as_python_s():
    """They overflow, lack methods of Python's, and are refused by torch and Gymnasium."""

    @checked
    def given(width: int, *rest: object, share: float = 0.0, on: bool = False, **more: object) -> list:
        return [width, *rest, share, on, *more.values()]

    told = given(np.int8(100), np.uint8(3), share=np.float64(0.5), on=np.True_, depth=np.int64(2), label=np.str_("a"))
    assert [type(value) for value in told] == [int, int, float, bool, int, np.str_]
    venv = sb3_fair.make_vec("sb3_fair/JobHiring-Small-v0", np.uint8(2), episode_length=np.int8(100), seed=np.int64(0))
    model = sb3_fair.FairPPO(
        "MlpPolicy", venv, n_steps=8, batch_size=np.int64(16), n_epochs=1, alpha=1.0, seed=np.int8(0)
    )
    assert model.learn(16).num_timesteps == 16


ALIASES = """
import numpy as np, numpy.typing
from typing import TypeVar
from typing_extensions import TypeAliasType

Scalar = TypeVar("Scalar", bound=np.generic)
numpy.typing.ArrayLike = TypeAliasType("ArrayLike", numpy.typing.ArrayLike)
numpy.typing.NDArray = TypeAliasType("NDArray", np.ndarray[tuple, np.dtype[Scalar]], type_params=(Scalar,))

from sb3_fair.fairness.arguments import Numbers, checked

@checked
def drawn(width: int | None = None, rows: Numbers | None = None, table: numpy.typing.NDArray[np.float64] | None = None):
    return width, rows, table

drawn(3, [0.5], np.ones(2)), drawn(table=None)
for wrong in ({"width": 0.5}, {"rows": [np.nan]}, {"table": [0.5]}):
    try:
        drawn(**wrong)
    except ValueError as error:
        print(error)
"""


def test_the_aliases_of_numpy_from_2_5_on_mean_what_its_unions_meant():
    printed = subprocess.run([sys.executable, "-c", ALIASES], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [
        "width must be a positive integer or None, got 0.5",
        "rows must be an array (each entry a finite number) or None, got nan at [0]",
        "table must be an array or None, got [0.5]",
    ]


def test_further_arguments_by_place_are_those_of_no_name():
    @checked
    def grown(width: int, *rest: str, height: int = 1) -> tuple:
        return width, rest, height

    assert grown(1, "a", "b", height=2) == (1, ("a", "b"), 2)
    with pytest.raises(ValueError, match="height must be a positive integer"):
        grown(1, "a", height=0)


def test_actions_and_feedback_are_among_the_actions():
    tracker = fairness.FairnessTracker(notions=("EO",), n_actions=2)
    for wrong in ({"action": -1}, {"action": 10**9}, {"action": 1, "feedback": 2.0}):
        with pytest.raises(ValueError, match="must be one of the 2 actions"):
            tracker.add(fairness.Interaction(group="a", **wrong))
    assert tracker.add(fairness.Interaction(group="a", action=np.int64(1), feedback=0.0)) == 0


SIZES = {
    "Doughnut-v0": "n_people episode_length",
    "FraudDetection-v0": "num_customers n_hours max_transactions",
    "JobHiring-v0": "team_size episode_length",
    "Lending-v0": "episode_length window",
    "AttentionAllocation-v0": "n_locations history_length",
    "VaccineDelivery-v0": "countries",
    "HomeVisits-v0": "slots days",
    "EpidemicControl-v0": "episode_length burn_in",
    "LoanAllocation-v0": "episode_length",
}


@pytest.mark.parametrize("env_id", SIZES)
def test_sizes_of_scenarios_have_an_end(env_id):
    for name in SIZES[env_id].split():
        for size in (10**12, 10**400, -1):
            assert outcome(sb3_fair.make_vec, {"env_id": f"sb3_fair/{env_id}"}, name, size) is None, name


NEVER_RIGHT = ("10**400", "object", "bytes", "nan", "-inf", "list-of-nan", "list-of-objects", "nested-list")


def test_settings_of_scenarios_are_refused_by_name():
    worlds = {row.entry_point: env_id for env_id, row in reversed(WORLDS.items())}
    found, tried = [], 0
    for env_id in worlds.values():
        world, *_ = sb3_fair.make_vec(env_id).get_attr("world")
        for setting in fields(world.config):
            for kind in NEVER_RIGHT[setting.name == "obstruct_turns" :]:  # any number of turns, to infinity
                tried += 1
                problem = outcome(sb3_fair.make_vec, {"env_id": env_id}, setting.name, WRONG[kind])
                if problem:
                    found.append(f"{env_id}: {setting.name}={kind}: {problem[:200]}")
    assert not found, "\n".join(found)
    assert tried > 900


def test_warnings_point_at_the_line_of_the_user():
    with pytest.warns(UserWarning, match="alpha and beta are 0") as caught:
        sb3_fair.FairPPO("MlpPolicy", "CartPole-v1", n_steps=64, group_fn=lambda obs, infos: [0] * len(obs))
    assert [warning.filename for warning in caught if "alpha and beta" in str(warning.message)] == [__file__]
