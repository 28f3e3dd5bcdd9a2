from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.errors import InputError
from joulie.lab.experiment.definition import ALONE, Experiment, parse_experiment, read_experiment
from joulie.lab.experiment.seeds import parse_seeds, shown_seeds
from joulie.lab.model.refusals import LabError
from joulie.lab.model.setup import RunSetup

HERE = Path()


def toml(text: str) -> Experiment:
    return parse_experiment(text, "caps.toml", HERE)


def yaml(text: str) -> Experiment:
    return parse_experiment(text, "caps.yaml", HERE)


def test_an_empty_file_is_an_experiment_with_the_defaults() -> None:
    experiment = toml("")

    assert (experiment.name, experiment.baseline, experiment.variants) == ("caps", ALONE, (ALONE,))
    assert experiment.seeds == tuple(range(1, 21))
    assert experiment.cases[0].setup == RunSetup()


CAPS = """
name = "GPU caps"
question = "How far down?"
seeds = "101-105"
scheduler = "most"
baseline = "full"
[trace]
load = 0.5
[policy]
name = "uniform"
cpu_cap_pct = 90
[variants]
full = {}
capped = { policy = { gpu_cap_pct = 60 }, plant.sleep = true }
dotted = { "policy.gpu_cap_pct" = 60, "plant.sleep" = true }
"""


def test_variants_override_single_keys_of_what_all_share_nested_or_with_dots() -> None:
    experiment = toml(CAPS)
    full, capped, dotted = experiment.cases

    assert full.setup.scheduler == capped.setup.scheduler == "most"
    assert (capped.setup.policy.name, capped.setup.policy.cpu_cap_pct) == ("uniform", 90.0)
    assert (capped.setup.policy.gpu_cap_pct, capped.setup.plant.sleep) == (60.0, True)
    assert full.setup.policy.gpu_cap_pct == 100.0
    assert dotted.setup == capped.setup
    assert experiment.seeds == (101, 102, 103, 104, 105)
    assert full.trace.load == 0.5


def test_yaml_says_the_same_as_toml() -> None:
    same = yaml("""
name: GPU caps
question: How far down?
seeds: 101-105
scheduler: most
baseline: full
trace: {load: 0.5}
policy: {name: uniform, cpu_cap_pct: 90}
variants:
  full: {}
  capped: {policy: {gpu_cap_pct: 60}, plant.sleep: true}
  dotted: {policy.gpu_cap_pct: 60, plant.sleep: true}
""")

    assert same.cases == toml(CAPS).cases


def test_a_sweep_makes_a_variant_of_every_combination_named_by_its_values() -> None:
    experiment = toml("""
[policy]
name = "uniform"
[sweep]
"policy.gpu_cap_pct" = [100, 70]
scheduler = ["least", "most"]
""")

    assert experiment.variants == (
        "gpu_cap_pct=100, scheduler=least",
        "gpu_cap_pct=100, scheduler=most",
        "gpu_cap_pct=70, scheduler=least",
        "gpu_cap_pct=70, scheduler=most",
    )
    last = experiment.cases[-1].setup
    assert (last.policy.gpu_cap_pct, last.scheduler) == (70.0, "most")


def test_facets_give_every_value_the_same_variants_and_other_work() -> None:
    experiment = toml("""
[facets]
"trace.load" = [0.3, 0.6]
[variants]
a = {}
b = { scheduler = "most" }
""")

    assert experiment.facets == ("load=0.3", "load=0.6")
    assert [(case.facet, case.variant, case.trace.load) for case in experiment.cases] == [
        ("load=0.3", "a", 0.3),
        ("load=0.3", "b", 0.3),
        ("load=0.6", "a", 0.6),
        ("load=0.6", "b", 0.6),
    ]


def test_files_that_an_experiment_names_lie_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "real.toml"
    path.write_text('[trace]\nfile = "jobs.swf"\n[weather]\nfile = "air.csv"\n')

    case = read_experiment(path).cases[0]

    assert case.trace.file == str(tmp_path / "jobs.swf")
    assert case.setup.weather.file == str(tmp_path / "air.csv")


def test_settings_become_what_the_environment_would_say() -> None:
    setup = toml(
        "[settings]\nSTATIC_HP_FRAC = 0.4\nQUEUE_HP_MIN = 7\nCPU_WRITE_ABSOLUTE_CAPS = true\nRECONCILE_INTERVAL = '90s'"
    ).cases[0]

    assert setup.setup.environment == {
        "STATIC_HP_FRAC": "0.4",
        "QUEUE_HP_MIN": "7",
        "CPU_WRITE_ABSOLUTE_CAPS": "true",
        "RECONCILE_INTERVAL": "90s",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("polcy.name = 'none'", "caps.toml: Object contains unknown field `polcy`"),
        ("policy.nmae = 'none'", "caps.toml: policy: Object contains unknown field `nmae`"),
        ("[[cluster.nodes]]\ncount = 0", "caps.toml: cluster.nodes[0].count: Expected `int` >= 1"),
        ("trace.hours = -1", "caps.toml: trace.hours: Expected `float` > 0.0"),
        ("[variants]\na = { trace.load = 'much' }", "caps.toml: a: trace.load: Expected `float | null`, got `str`"),
        ("[variants]\na = { scheduler.x = 1 }\n", "caps.toml: a: scheduler: Expected `str`, got `object`"),
        ("scheduler = 'most'\n[variants]\na = { 'scheduler.x' = 1 }", "scheduler holds 'most', which has no keys"),
        ("seeds = 0", "caps.toml: seeds: 0 seeds: at least 1 and at most 10,000"),
        ("seeds = [1, 1]", "caps.toml: seeds: 1 appears twice, which would count one result as two"),
        ("seeds = '9-5'", "caps.toml: seeds: '9-5': the range goes backwards"),
        ("seeds = 'many'", "caps.toml: seeds: 'many' is neither a seed nor a range of seeds"),
        ("seeds = [-1]", "caps.toml: seeds: -1 is not a seed"),
        ("baseline = 'b'\n[variants]\na = {}", "caps.toml: baseline: there is no variant 'b': there are a"),
        ("[sweep]\nscheduler = []", "caps.toml: sweep.scheduler: holds no value"),
        ("[sweep]\nscheduler = ['most', 'most']", "caps.toml: sweep: a value appears twice"),
        ("tune = { seeds = '30-35', among = ['b'] }\n[variants]\na = {}", "tune.among: there is no variant 'b'"),
        ("tune = { seeds = '30-35', minimise = 'x' }", "caps.toml: tune.minimise: there is no measure 'x'"),
        ("settings.STATIC_HP_FRAK = 1", "caps.toml: settings.STATIC_HP_FRAK: is not a setting; STATIC_HP_FRAC?"),
        ("settings.STATIC_HP_FRAC = 7", "caps.toml: settings.STATIC_HP_FRAC='7' cannot be used: allowed is"),
        ("settings.POLICY_TYPE = 'x'", "caps.toml: settings.POLICY_TYPE: stands under policy.name here"),
        ("policy.name = 'ecco'", "caps.toml: policy.name: 'ecco' is none of none, uniform, "),
        ("scheduler = 'best'", "caps.toml: scheduler: 'best' is none of least, most, random, joulie, nor a"),
        (
            "[[cluster.nodes]]\ncount = 1\ncpu = 'i486'",
            "caps.toml: cluster.nodes[0].cpu: 'i486' is not in the catalogue",
        ),
        ("name = ", "caps.toml: Invalid value (at end of document)"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        toml(text)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_setting_tuned_on_seeds_that_it_is_reported_on_is_refused() -> None:
    with pytest.raises(LabError, match=r"caps\.toml: seed 15 is used for tuning and for the report \(6 such seeds\)"):
        toml("seeds = '1-20'\ntune.seeds = '15-40'")


def test_a_file_that_is_no_experiment_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.json: an experiment is a \.toml, \.yaml or \.yml file"):
        parse_experiment("{}", "x.json", HERE)
    with pytest.raises(InputError, match=r"caps\.yaml: an experiment is one document of keys and values"):
        yaml("- 1\n- 2\n")
    with pytest.raises(InputError, match=r"caps\.yaml: line 2: did not find expected node content"):
        yaml("a: [\n")
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        read_experiment(tmp_path / "none.toml")


@given(st.lists(st.integers(0, 300), min_size=1, max_size=50, unique=True))
def test_seeds_that_are_shown_are_read_back(seeds: list[int]) -> None:
    shown = shown_seeds(tuple(seeds)).replace("–", "-")

    assert parse_seeds(shown) == tuple(sorted(seeds))


def test_a_count_of_seeds_starts_at_one() -> None:
    assert parse_seeds(3) == (1, 2, 3)


def test_the_short_form_overrides_keys_and_claims_nothing(tmp_path: Path) -> None:
    text = """
seeds = 20
claims = [{ variant = "a", is = "lower" }]
[trace]
load = 0.5
[short]
seeds = 2
trace.hours = 1
"variants.b.queue.depth" = 10
[variants]
b = {}
a = { scheduler = "most" }
"""
    path = tmp_path / "caps.toml"
    path.write_text(text)

    short, whole = read_experiment(path, short=True), read_experiment(path)

    assert (short.name, short.seeds, short.claims) == ("caps-short", (1, 2), ())
    assert (short.cases[0].trace.hours, short.cases[0].trace.load) == (1.0, 0.5)
    assert [case.setup.queue.depth for case in short.cases] == [10, 100]
    assert (whole.name, len(whole.seeds), len(whole.claims)) == ("caps", 20, 1)
    assert parse_experiment(short.text, "caps.toml", tmp_path) == short


@pytest.mark.parametrize(
    "text",
    [
        "---\nseeds: 20\nshort: {seeds: 2}\nvariants:\n  none:\n  most: {scheduler: most}\n",
        '{"seeds": 20, "short": {"seeds": 2}, "variants": {"none": null, "most": {"scheduler": "most"}}}',
        "\ufeffseeds: 20\nshort: {seeds: 2}\nvariants: {none: {}, most: {scheduler: most}}\n",
    ],
)
def test_any_form_of_yaml_has_a_short_form_and_variants_without_keys(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(text, encoding="utf-8")

    short = read_experiment(path, short=True)

    assert (short.seeds, short.variants, short.name) == ((1, 2), ("none", "most"), "any-short")
    assert len(read_experiment(path).seeds) == 20


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text("\ufeffseeds = 3\n", encoding="utf-8")

    assert read_experiment(tmp_path / "marked.toml").seeds == (1, 2, 3)


def test_files_are_found_from_wherever_a_run_takes_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.toml").write_text("trace.file = 'day.jsonl'\nweather.file = 'air.csv'\n")
    (tmp_path / "air.csv").write_text("time_s,outside_c\n0,10\n")
    monkeypatch.chdir(tmp_path)

    case = read_experiment(Path("a.toml")).cases[0]

    assert case.trace.file == str(tmp_path / "day.jsonl")
    assert case.setup.weather.file == str(tmp_path / "air.csv")


@pytest.mark.parametrize("key", ["record_s", "plant.step_s"])
def test_what_is_compared_is_measured_alike(key: str) -> None:
    with pytest.raises(LabError, match=rf"^caps\.toml: b: {key} is 20 s, but \d+ s of a: .*\(put it under facets\)$"):
        toml(f"[variants]\na = {{}}\nb = {{ {key} = 20 }}\n")
    assert toml(f"facets = {{ '{key}' = [20, 30] }}\n[variants]\na = {{}}\nb = {{ scheduler = 'most' }}\n").cases


def test_the_same_runs_are_known_however_they_are_written() -> None:
    one = toml("seeds = 2\n[variants]\na = {}\nb = { policy.gpu_cap_pct = 60, policy.name = 'uniform' }\n")

    for same in (
        "claim = ''\nseeds = '1-2'\nvariants = { a = {}, b.policy = { name = 'uniform', gpu_cap_pct = 60.0 } }\n",
        "seeds = [1, 2]\nbaseline = 'a'\n[variants]\na = {}\nb.policy = { gpu_cap_pct = 60, name = 'uniform' }\n",
    ):
        assert one.asks_for_the_same_as(toml(same))
    assert not one.asks_for_the_same_as(toml("seeds = 2\n[variants]\na = {}\nb = { policy.name = 'uniform' }\n"))


def test_a_facet_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"^caps\.toml: there is no facet 'load=1': there are none$"):
        toml("").case("as given", "load=1")
