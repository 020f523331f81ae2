"""Loan allocation: one loan a day to one of several applicants, and its exact optimum."""

from sb3_fair.zoo.envs.loans.world import LoanAllocationWorld, LoansConfig

__all__ = ["LoanAllocationWorld", "LoansConfig"]
