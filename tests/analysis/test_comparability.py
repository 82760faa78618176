"""Warnings about runs that were not trained alike."""

import json

import pytest

from mrn.analysis.figures import draw_figures
from mrn.analysis.plots import draw_curves
from tests.analysis.helpers import SHORT, summary_of, tasks_of
from tests.sweeps.helpers import write_run


def test_different_settings_of_methods_are_named(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / "runs", [0.5], seed, threads=seed)
        write_run(tmp_path / "runs", [0.4], seed, critic="bvn", variant="big", batch_size=2048)
    warning = "FetchPush: methods differ in batch_size (MRN: 1024; BVN, big: 2048)"
    assert summary_of(tmp_path / "runs").warnings == (warning,)
    with pytest.warns(UserWarning, match=r"batch_size \(MRN: 1024; BVN, big: 2048\)"):
        draw_figures(tmp_path / "runs", tmp_path / "out")
    assert f"Warning: {warning}." in (tmp_path / "out/table.md").read_text()


def test_deviations_from_a_recipe_warn(tmp_path):
    write_run(tmp_path, [0.1] * 4, 1, recipe="fast")
    write_run(tmp_path, [0.1] * 4, 2, recipe="fast", target_update_interval=0, redraws=0)
    write_run(tmp_path, SHORT, 1)
    write_run(tmp_path, SHORT, 1, critic="bvn", action_penalty=0.3)
    within, between = summary_of(tmp_path).warnings
    assert within == "FetchPush, MRN (fast): seeds differ in redraws, target_update_interval"
    usual = "as in its recipe"
    values = f"action_penalty (MRN: {usual}; MRN (fast): {usual}; BVN: 0.3)"
    assert between == f"FetchPush: methods differ in {values}"


def test_equal_values_from_recipe_and_user_are_no_difference(tmp_path):
    write_run(tmp_path, [0.1, 0.2], 1)  # 50 cycles
    write_run(tmp_path, [0.1, 0.2], 1, recipe="fast", cycles=50)
    assert summary_of(tmp_path).warnings == ()


def test_named_variants_are_meant_to_differ(tmp_path):
    write_run(tmp_path, [0.5], 1)
    write_run(tmp_path, [0.4], 1, variant="big", batch_size=2048)
    assert summary_of(tmp_path).warnings == ()
    write_run(tmp_path, [0.4], 1, critic="bvn", learning_rate=0.1)
    (warning,) = summary_of(tmp_path).warnings
    assert "learning_rate (MRN: 0.001; MRN, big: 0.001; BVN: 0.1)" in warning
    assert "batch_size" not in warning


def test_renamed_settings_in_grid_labels_are_meant_to_differ(tmp_path):
    write_run(tmp_path, [0.1] * 4, 1, recipe="fast")
    other = {"variant": "target_every=0", "target_update_interval": 0}
    write_run(tmp_path, [0.1] * 4, 1, critic="bvn", recipe="fast", **other)
    assert summary_of(tmp_path).warnings == ()


def test_different_precisions_of_seeds_warn(tmp_path):
    folders = [write_run(tmp_path, SHORT, seed, precision="auto") for seed in (1, 2)]
    assert summary_of(tmp_path).warnings == ()
    about = json.loads((folders[0] / "config.json").read_text())
    about["machine"] = {"precision": "bfloat16"}  # the other has none, as before it was recorded
    (folders[0] / "config.json").write_text(json.dumps(about))
    assert summary_of(tmp_path).warnings == ("FetchPush, MRN: seeds differ in precision",)


def test_different_engines_that_auto_selected_warn(tmp_path):
    """Without EnvPool, `auto` is Gymnasium, which has other physics."""
    folders = [write_run(tmp_path, [0.5], 1, critic=critic) for critic in ("mrn", "bvn", "iqe")]
    for folder, engine in zip(folders, ("envpool", "gymnasium", None), strict=True):
        about = json.loads((folder / "config.json").read_text())
        about["machine"] = {"engine": engine} if engine else {}  # missing in old runs
        (folder / "config.json").write_text(json.dumps(about))
    (warning,) = summary_of(tmp_path).warnings
    assert warning == "FetchPush: runs used different engines (envpool, gymnasium)"


def test_different_versions_of_simulators_warn(tmp_path):
    folders = [write_run(tmp_path, SHORT, seed, critic=c) for seed in (1, 2) for c in ("mrn", "dn")]
    assert summary_of(tmp_path).warnings == ()
    for folder, version in zip(folders, ("3.1.0", "3.2.0", "3.1.0", "3.2.0"), strict=True):
        about = json.loads((folder / "config.json").read_text())
        about["versions"] |= {"mujoco": version, "numpy": version}
        (folder / "config.json").write_text(json.dumps(about))
    warning = "FetchPush: runs used different versions of mujoco (3.1.0, 3.2.0)"
    assert summary_of(tmp_path).warnings == (warning,)
    about = json.loads((folders[0] / "config.json").read_text())
    about["earlier_versions"] = [{"torch": "1.0"}]  # resumed after an update
    (folders[0] / "config.json").write_text(json.dumps(about))
    assert "mujoco (3.1.0, 3.2.0), torch (1.0, " in summary_of(tmp_path).warnings[0]


def test_unaligned_epochs_warn_and_are_not_ranked(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, [0.5, 0.9], seed)
        write_run(tmp_path, [0.1, 0.2], seed, critic="bvn", variant="cycles=30", cycles=30)
    summary = summary_of(tmp_path)
    assert not any(row.best or row.improvement for row in summary.rows)
    (warning,) = summary.warnings
    assert "epochs differ in length and do not align yet" in warning
    assert summary.tasks == ()  # nor across tasks
    for seed in (1, 2):  # 3 epochs of 1,000 episodes equal 5 of 600
        write_run(tmp_path / "aligned", [0.5, 0.9, 0.9], seed)
        write_run(
            tmp_path / "aligned", [0.1] * 5, seed, critic="bvn", variant="cycles=30", cycles=30
        )
    aligned = summary_of(tmp_path / "aligned")
    assert [row.best for row in aligned.rows] == [True, False]
    assert aligned.warnings == ()


def test_runs_before_the_first_common_epoch_are_left_out(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path, SHORT, seed)
        write_run(tmp_path, [0.1] * 4, seed, recipe="fast")
    write_run(tmp_path, [0.9, 0.9], 3, recipe="fast", epochs=4)
    summary = summary_of(tmp_path)
    assert {row.method: (row.stride, row.seeds) for row in summary.rows} == {
        "ddpg-mrn": (1, (1, 2)),
        "ddpg-mrn+fast": (4, (1, 2)),
    }
    assert summary.rows[1].success.value == pytest.approx(0.1)
    assert not summary.rows[1].complete  # the third seed is still training
    assert summary.tasks == ()
    tasks = dict(tasks_of(tmp_path))
    panel = draw_curves(tasks, ["FetchPush"], ["ddpg-mrn", "ddpg-mrn+fast"]).axes[0]
    assert [line.get_xdata()[0] for line in panel.lines if line.get_gid() == "shared"] == [50_000]
    assert summary.warnings == (
        "FetchPush: epochs differ in length; runs before the first common epoch are left out: "
        "MRN (fast) seed 3",
    )
    # Epochs of 750 and 1,000 episodes align every 3,000.
    for seed in (1, 2):
        write_run(tmp_path / "other", [0.1] * 4, seed, recipe="fast", num_envs=30)
        write_run(tmp_path / "other", [0.2] * 4, seed)
    assert {row.method: row.stride for row in summary_of(tmp_path / "other").rows} == {
        "ddpg-mrn": 3,
        "ddpg-mrn+fast": 4,
    }
