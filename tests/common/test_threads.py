"""Do torch and BLAS keep to the number of threads they are given?"""

import torch as th
from threadpoolctl import threadpool_info, threadpool_limits

from sb3_fair.common.threads import threads, use_threads


def test_torch_and_blas_use_as_many_threads_as_they_are_told():
    before = th.get_num_threads()
    with threadpool_limits(2):  # puts back what it found
        try:
            use_threads(2)
            assert th.get_num_threads() == 2
            use_threads(1)
            assert th.get_num_threads() == 1
            assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
        finally:
            th.set_num_threads(before)


def test_for_a_while_there_are_as_many_threads_as_they_are_told():
    def blas():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threads(2):
        with threads(1):
            assert th.get_num_threads() == 1 and blas() == {1}
        assert th.get_num_threads() == 2 and blas() == {2}
