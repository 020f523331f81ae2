"""Trained policies that ship with the package.

Each is the folder of a run without what only its training needs: one seed, settings of the zoo, not the best of many.
``python -m sb3_fair.zoo.runs.pretrained FOLDER`` trains them all anew, into the layout in which they ship.
"""

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from sb3_fair.common.front import Front
from sb3_fair.common.run_folder import RunFolder
from sb3_fair.zoo import names
from sb3_fair.zoo.evaluation.evaluate import evaluate_rules, policies_of, words_of
from sb3_fair.zoo.runs.plan import Plan, make_plan
from sb3_fair.zoo.runs.policy_file import load_policy, save_policy
from sb3_fair.zoo.runs.settings import tuning
from sb3_fair.zoo.runs.train import build_model, training_env

SHIPPED = {
    "pcn": "sb3_fair/JobHiring-v0",
    "f_ppo": "sb3_fair/Lending-v0",
    "fair_ppo": "sb3_fair/AllelopathicHarvest-All-v0",
    "fair_qcm": "sb3_fair/Doughnut-v0",
}
"""Algorithm -> its main scenario."""
SEED = 0


def pretrained(algo: str) -> RunFolder:
    """The run of a policy that ships, of an algorithm in :data:`SHIPPED`: its configuration, model and evaluation.

    :raises InputError: if there is no such policy
    """
    names.choose("pretrained algorithm", algo, SHIPPED)
    return RunFolder.open(Path(str(files("sb3_fair.zoo"))) / "policies" / folder_name(algo))


def load_pretrained(algo: str, device: str = "auto") -> Any:
    """The model of a policy that ships, ready to predict.

    PCN's follows the command that one of its policies has: ``model.set_command(pretrained("pcn").front[0])``.
    """
    run = pretrained(algo)
    return load_policy(Plan.of_run(run), run, device)


def folder_name(algo: str) -> str:
    """``<algo>_<name of the environment>``."""
    return f"{algo}_{SHIPPED[algo].split('/')[1]}"


def make_pretrained(algo: str, folder: str | Path) -> RunFolder:
    """Trains a policy that ships, and evaluates it as ``sb3-fair train`` does, but with sampled actions where it was
    tuned with these."""
    plan = make_plan(algo, SHIPPED[algo], seed=SEED)
    run = RunFolder(Path(folder) / folder_name(algo))
    run.path.mkdir(parents=True)
    run.start(
        config=plan.config,
        args={},
        words=words_of(plan),
        command=f"python -m sb3_fair.zoo.runs.pretrained {folder} {algo}",
    )
    model = build_model(plan, training_env(plan), "cpu")
    model.learn(plan.n_timesteps)
    save_policy(model, run.policy)
    sampled = (tuning(plan.algorithm, plan.env) or {}).get("sampled", False)
    run.save_results(Front(tuple(policies_of(plan, model, False if sampled else None))), evaluate_rules(plan))
    return run


if __name__ == "__main__":
    for name in sys.argv[2:] or SHIPPED:
        print(make_pretrained(name, sys.argv[1]).path)
