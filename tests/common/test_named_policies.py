"""Is a policy of an unknown name refused with those that there are?"""

import pytest

from sb3_fair import FPPO, PCN, FairPPO, FairQCM, PPOLagrangian


@pytest.mark.parametrize("algorithm", [FPPO, FairPPO, PPOLagrangian, PCN, FairQCM])
def test_an_unknown_policy_is_refused_with_the_nearest_name(algorithm):
    with pytest.raises(ValueError, match=r"got 'MlpPolcy' \(did you mean '\w+Policy'"):
        algorithm("MlpPolcy", "sb3_fair/JobHiring-Small-v0")
