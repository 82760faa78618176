"""Display names of methods."""

from mrn.analysis.names import CRITICS, display_names
from mrn.critics import CRITICS as ALL_CRITICS


def test_names_are_readable():
    names = {
        "ddpg-mrn": "MRN",
        "ddpg-mrn+fast": "MRN (fast)",
        "ddpg-mrn+fast+slow-targets": "MRN, slow targets (fast)",
        "ddpg-mrn+target_update_interval=0": "MRN, slow targets",
        "ddpg-mrn+fast+batch_size=512": "MRN, batch size 512 (fast)",
        "ddpg-mrn+fast+big+batch_size=512": "MRN, big, batch size 512 (fast)",
        "ddpg-dn": "Deep norm",
        "ddpg-monolithic+fast": "Monolithic (fast)",
        "ddpg-mine_critics_Ring": "mine_critics_Ring",
    }
    assert display_names(names) == names
    # Settings by their names in earlier versions
    assert display_names(["ddpg-mrn+fast+target_every=0"]) == {
        "ddpg-mrn+fast+target_every=0": "MRN, slow targets (fast)"
    }


def test_every_critic_has_a_name():
    assert set(CRITICS) == set(ALL_CRITICS)


def test_algorithm_is_named_unless_all_methods_share_it():
    assert display_names(["sac-mrn", "sac-bvn"]) == {"sac-mrn": "MRN", "sac-bvn": "BVN"}
    assert display_names(["gcsl-none"]) == {"gcsl-none": "GCSL"}
    assert display_names(["sac-mrn", "td3-mrn+fast", "gcsl-none"]) == {
        "sac-mrn": "SAC + MRN",
        "td3-mrn+fast": "TD3 + MRN (fast)",
        "gcsl-none": "GCSL",
    }
    assert display_names(["mine"]) == {"mine": "mine"}


def test_equal_names_fall_back_to_full_names():
    methods = ["ddpg-mrn+slow-targets", "ddpg-mrn+slow_targets"]
    assert display_names(methods) == {method: method for method in methods}
