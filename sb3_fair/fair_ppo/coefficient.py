"""Weights of the penalties of FairPPO: lambda, alpha and beta."""

from typing import Literal

from sb3_fair.fair_ppo.episodes import MEMORY
from sb3_fair.fairness.arguments import checked
from sb3_fair.fairness.validation import number

SMALLEST_PENALTY = 1e-8


@checked
class Coefficient:
    """The weights of the penalties: lambda, alpha and beta.

    ==========  ====================================================================================================
    ``lam``     lambda
    ==========  ====================================================================================================
    a number    that number
    ``"auto"``  PPO's loss / (alpha D_norm of the past + beta D_norm of the future), at most ``lam_max``
    ``"dual"``  rises by ``eta`` (average D_norm - ``target``) with every rollout, kept between 0 and ``lam_max``; of
                past and future D_norm the mean weighted with alpha and beta, averaged exponentially
    ==========  ====================================================================================================

    :param alpha: weight of past rewards
    :param beta: weight of expected rewards
    :param eta: step of ``"dual"``
    :param target: D_norm that ``"dual"`` aims at
    :param lam_max: the largest lambda of ``"auto"`` and ``"dual"``
    :raises ValueError: if a number is negative, or ``lam`` an unknown word
    """

    def __init__(
        self,
        alpha: float = 0.0,
        beta: float = 0.0,
        lam: float | Literal["auto", "dual"] = 1.0,
        eta: float = 0.05,
        target: float = 0.05,
        lam_max: float = 10.0,
    ) -> None:
        self.alpha, self.beta, self.lam = alpha, beta, lam
        self.eta, self.target, self.lam_max = eta, target, lam_max
        self.value = min(1.0, lam_max) if isinstance(lam, str) else lam
        """lambda."""
        self._average: float | None = None

    def go_on(self, before: "Coefficient") -> None:
        """Takes lambda over from the coefficient before, if it is found in the same way."""
        if isinstance(self.lam, str) and self.lam == before.lam:
            self.value, self._average = min(before.value, self.lam_max), before._average

    @property
    def retrospective(self) -> float:
        """k = lambda alpha."""
        return self.value * self.alpha

    @property
    def prospective(self) -> float:
        """k = lambda beta."""
        return self.value * self.beta

    def update(self, past: float, future: float, loss: float | None = None) -> float:
        """lambda for the rollout that has just ended; called once, before its advantages are formed.

        :param past: D_norm of past rewards, of ``Retrospective.past.normalised``
        :param future: mean D_norm of the values, 0 if it is not measured
        :param loss: mean of PPO's loss in the update before; None: there was none, its size counts as 1
        """
        penalty = self.alpha * past + self.beta * future
        if self.lam == "auto":
            size = 1.0 if loss is None else abs(number("loss", loss))
            self.value = min(size / (penalty + SMALLEST_PENALTY), self.lam_max)
        elif self.lam == "dual" and self.alpha + self.beta:
            disparity = penalty / (self.alpha + self.beta)
            average = disparity if self._average is None else MEMORY * self._average + (1 - MEMORY) * disparity
            self._average = average
            self.value = min(max(self.value + self.eta * (average - self.target), 0.0), self.lam_max)
        return self.value
