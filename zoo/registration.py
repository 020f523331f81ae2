"""Which environment IDs exist, and which World with which settings is behind each?

The IDs exist after ``import sb3_fair``. ``"sb3_fair:sb3_fair/JobHiring-v0"`` also works where nothing imported the
package before, as in the workers of a ``SubprocVecEnv``.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import gymnasium as gym

HIRING = "sb3_fair.zoo.envs.hiring:HiringWorld"
DOUGHNUT = "sb3_fair.zoo.envs.doughnut:DoughnutWorld"
LOANS = "sb3_fair.zoo.envs.loans:LoanAllocationWorld"
VISITS = "sb3_fair.zoo.envs.visits:HomeVisitsWorld"
VACCINES = "sb3_fair.zoo.envs.vaccines:VaccineDeliveryWorld"
LENDING = "sb3_fair.zoo.envs.lending:LendingWorld"
ATTENTION = "sb3_fair.zoo.envs.attention:AttentionWorld"
EPIDEMIC = "sb3_fair.zoo.envs.epidemic:EpidemicWorld"
FRAUD = "sb3_fair.zoo.envs.fraud:FraudWorld"
HARVEST = "sb3_fair.zoo.envs.harvest.ego:EgoHarvestWorld"
POPULATIONS = {"": "belgian", "-Gender": "gender", "-NationalityGender": "nationality-gender", "-Marital": "marital"}
BIASES = {"": 0, "-BiasMen": 1, "-BiasBelgianMen": 2}


def _hiring() -> Iterator[tuple[str, dict[str, Any]]]:
    for (people, population), (preference, bias) in product(POPULATIONS.items(), BIASES.items()):
        yield f"sb3_fair/JobHiring{people}{preference}-v0", {"population": population, "bias": bias}
    yield "sb3_fair/JobHiring-Small-v0", {"team_size": 20, "episode_length": 100}


WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{env_id: (HIRING, settings) for env_id, settings in _hiring()},
    "sb3_fair/FraudDetection-v0": (FRAUD, {}),
    "sb3_fair/FraudDetection-BiasEU-v0": (FRAUD, {"bias": 1}),
    "sb3_fair/FraudDetection-BiasEUM0-v0": (FRAUD, {"bias": 2}),
    "sb3_fair/FraudDetection-Static-v0": (FRAUD, {"customer_dynamics": False, "fraud_proportion": 0.5}),
    "sb3_fair/FraudDetection-MultiMAuS-v0": (FRAUD, {"preset": "multimaus"}),
    "sb3_fair/Doughnut-v0": (DOUGHNUT, {}),
    "sb3_fair/Doughnut-Small-v0": (DOUGHNUT, {"n_people": 3, "episode_length": 12}),
    "sb3_fair/Doughnut-Clock-v0": (DOUGHNUT, {"clock": True, "end": "terminated"}),
    "sb3_fair/LoanAllocation-v0": (LOANS, {}),
    "sb3_fair/LoanAllocation-Code-v0": (LOANS, {"start_levels": (4, 4, 7, 7)}),
    "sb3_fair/LoanAllocation-Gaussian-v0": (LOANS, {"credit": "gaussian"}),
    "sb3_fair/HomeVisits-v0": (VISITS, {}),
    "sb3_fair/VaccineDelivery-v0": (VACCINES, {}),
    "sb3_fair/Lending-v0": (LENDING, {}),
    "sb3_fair/Lending-Long-v0": (LENDING, {"episode_length": 10_000}),
    "sb3_fair/Lending-Oracle-v0": (LENDING, {"oracle_outcomes": True}),
    "sb3_fair/Lending-Basic-v0": (LENDING, {"observation": "basic"}),
    "sb3_fair/AttentionAllocation-v0": (ATTENTION, {}),
    "sb3_fair/AttentionAllocation-Units-v0": (ATTENTION, {"action_mode": "units"}),
    "sb3_fair/AttentionAllocation-Discrete-v0": (ATTENTION, {"action_mode": "allocation"}),
    "sb3_fair/AttentionAllocation-Equal-v0": (ATTENTION, {"increase_rate": 0.1}),
    "sb3_fair/EpidemicControl-v0": (EPIDEMIC, {}),
    "sb3_fair/EpidemicControl-Hub-v0": (EPIDEMIC, {"initial_infected": (0,), "burn_in": 1}),
    "sb3_fair/AllelopathicHarvest-v0": (HARVEST, {}),
}


def register_all() -> None:
    """Registers every ID with Gymnasium; what is registered already stays as it is."""
    for env_id, (world, settings) in WORLDS.items():
        if env_id not in gym.registry:
            gym.register(
                env_id,
                entry_point="sb3_fair.zoo.build:make",
                vector_entry_point="sb3_fair.zoo.build:make_gymnasium_vec",
                kwargs={"world": world, **settings},
            )
