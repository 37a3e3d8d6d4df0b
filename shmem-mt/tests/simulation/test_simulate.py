"""The simulator: what it must compute exactly, what it must keep, the shape that is published for Gemini, bad input."""

import json
import math

import pytest
from conftest import read_results
from shmem_mt.report.charts import simulation
from shmem_mt.simulation import model_file, network_model, simulate
from shmem_mt.simulation.native_engine import Engine
from shmem_mt.simulation.network_model import Traffic

PLAIN = {  # every part of a message's way takes another time
    "name": "plain",
    "topology": "torus",
    "nodes_per_router": 1,
    "link_bytes_per_s": 1e9,
    "hop_latency_ns": 100,
    "packet_bytes": 4096,
    "packet_header_bytes": 4,
    "header_bytes": 20,
    "nic_message_ns": 30,
    "nic_bytes_per_s": 4e9,
    "nic_latency_ns": 500,
    "acknowledgement_ns": 70,
    "small_core_ns": 200,
    "small_bytes_per_s": 2e9,
    "large_core_ns": 150,
    "large_startup_ns": 1000,
    "large_bytes_per_s": 3e9,
    "large_from_bytes": 1 << 20,
}
DIRECT = {key: value for key, value in PLAIN.items() if key != "nodes_per_router"} | {
    "name": "rails",
    "topology": "direct",
    "link_bytes_per_s": [1e9],
    "nic_bytes_per_s": 1e12,
    "nic_message_ns": 1,
    "small_core_ns": 1,
    "small_bytes_per_s": 1e13,
}
IN_ORDER = ("ordered", "reorder-buffer", "acknowledged", "two-sided", "two-sided-any")


@pytest.fixture(scope="module")
def engine():
    with Engine() as running:
        yield running


@pytest.fixture
def simulated(engine):
    """Calls the engine: simulated(changes of PLAIN or another model, traffic...) -> its answer."""

    def call(changes=None, base=PLAIN, **traffic):
        model = model_file.checked({**base, **(changes or {})}, "test")
        told = {"nodes": 2, "cores": 1, "size_bytes": 8, "rule": "relaxed", "outstanding": 1, "pattern": "pair"}
        wanted = Traffic(**{**told, **traffic})
        network_model.check_traffic(model, wanted)
        return engine.simulate(model, wanted)

    return call


def one_way_ns(size, hops=1):
    """Core, network card, its latency, hops, the link once, the other card."""
    card = 30 + (size + 24) / 4
    return 200 + size / 2 + card + 500 + 100 * hops + (size + 24) / 1 + card


def back_ns(hops=1):
    return 500 + 100 * hops + 70


@pytest.mark.parametrize("size", [8, 1000, 4000])
def test_latency_is_the_sum_of_its_parts(simulated, size):
    answer = simulated(size_bytes=size, messages=1)
    assert answer["latency_mean_s"] == pytest.approx(one_way_ns(size) * 1e-9, rel=1e-4)
    assert answer["simulated_s"] == pytest.approx((one_way_ns(size) + back_ns()) * 1e-9, rel=1e-4)


def test_every_hop_takes_its_time(simulated):
    near = simulated(nodes=8, messages=1)["latency_mean_s"]  # 2 x 2 x 2: from 0 to 4 it is one
    far = simulated(nodes=64, messages=1)["latency_mean_s"]  # 4 x 4 x 4: from 0 to 32 half the way round
    assert near == pytest.approx(one_way_ns(8, 1) * 1e-9, rel=1e-4)
    assert far == pytest.approx(one_way_ns(8, 2) * 1e-9, rel=1e-4)


def test_the_large_mechanism_starts_once(simulated):
    """Its core cost, start-up and rate instead of the small one's; packets follow one another."""
    size = 2 * 4096 - 20
    answer = simulated({"large_from_bytes": 64}, size_bytes=size, messages=1, rule="ordered")
    first = 150 + 1000 + 30 + 4100 / 3
    second_arrives = first + 4100 / 3 + 500 + 100 + 4100 / 1
    first_through = first + 500 + 4100 / 1  # the link is slower than the card: the second waits for it
    ends = max(second_arrives, first_through + 4100 / 1 + 100) + 30 + 4100 / 4
    assert answer["latency_mean_s"] == pytest.approx(ends * 1e-9, rel=1e-4)


@pytest.mark.parametrize("window", [1, 2, 5])
def test_a_window_gives_its_messages_a_round_trip(simulated, window):
    round_trip = one_way_ns(8) + back_ns()
    rate = simulated(outstanding=window, messages=2000)["rate"]
    assert rate == pytest.approx(window / round_trip * 1e9, rel=0.01)


def test_the_core_bounds_the_rate(simulated):
    assert simulated(outstanding=100, messages=5000)["rate"] == pytest.approx(1e9 / (200 + 4), rel=0.01)


def test_the_network_card_bounds_the_node(simulated):
    rate = simulated(cores=32, outstanding=32, messages=500)["rate"]
    assert rate == pytest.approx(1e9 / (30 + 32 / 4), rel=0.02)


def test_the_slowest_link_bounds_the_bandwidth(simulated):
    changes = {"large_from_bytes": 64, "link_bytes_per_s": 5e8}
    answer = simulated(changes, size_bytes=65536, outstanding=16, messages=1000, rule="ordered")
    assert answer["bandwidth"] == pytest.approx(5e8, rel=0.01)


def test_the_engine_of_the_large_mechanism_bounds_the_node(simulated):
    changes = {"large_from_bytes": 64, "large_bytes_per_s": 5e8}
    answer = simulated(changes, size_bytes=65536, cores=4, outstanding=4, messages=300)
    assert answer["bandwidth"] == pytest.approx(5e8, rel=0.02)


COSTS = {
    "ordered": "ordered_core_ns",
    "fence": "fence_core_ns",
    "acknowledged": "acknowledged_core_ns",
    "two-sided": "two_sided_core_ns",
    "two-sided-any": "two_sided_core_ns",
}


@pytest.mark.parametrize("rule", network_model.RULES)
@pytest.mark.parametrize("cost", sorted(set(COSTS.values())))
def test_each_rule_has_its_own_cost(simulated, rule, cost):
    """At the core, before anything else: what is added shows in the latency of that rule's messages alone."""
    plain, dearer = (simulated({cost: ns}, rule=rule, messages=1)["latency_mean_s"] for ns in (0, 300))
    assert dearer - plain == pytest.approx(300e-9 if COSTS.get(rule) == cost else 0, abs=1e-12)


def test_a_burst_waits_for_all_of_it(simulated):
    answer = simulated({"window": "burst"}, outstanding=4, messages=400)
    burst_ns = one_way_ns(8) + back_ns() + 3 * (200 + 4)
    assert answer["rate"] == pytest.approx(4e9 / burst_ns, rel=0.01)
    assert simulated({"window": "burst"}, outstanding=4, messages=8)["rate"] == pytest.approx(4e9 / burst_ns, rel=1e-4)


@pytest.mark.parametrize("rates", [[1e9], [1e9, 1e9], [1e9, 5e8], [1e9, 2.5e8, 7.5e8]])
def test_rails_add_up(simulated, rates):
    told = dict(base=DIRECT, size_bytes=4000, outstanding=64, messages=4000)
    relaxed = simulated({"link_bytes_per_s": rates}, **told)
    assert relaxed["rate"] == pytest.approx(sum(rates) / 4024, rel=0.02)
    ordered = simulated({"link_bytes_per_s": rates}, **told, rule="ordered")
    assert ordered["rate"] == pytest.approx(rates[0] / 4024, rel=0.02)


def test_a_rail_that_has_rested_sends_a_burst_at_once(simulated):
    """As long as the mean stays below the rate nothing waits; above it the rate holds."""
    changes = {"link_bytes_per_s": [1e7], "hop_latency_ns": 500000}
    told = dict(base=DIRECT, size_bytes=4000, messages=200)
    plain, bursts = (simulated({**changes, "link_burst_bytes": burst}, **told)["rate"] for burst in (0, 20000))
    assert 1 / plain - 1 / bursts == pytest.approx(4024 / 1e7, rel=0.01)
    assert simulated({**changes, "link_burst_bytes": 20000}, **{**told, "outstanding": 64, "messages": 2000})[
        "rate"
    ] == (pytest.approx(1e7 / 4024, rel=0.02))


def test_acknowledged_is_a_message_each_round_trip(simulated):
    alone = simulated(outstanding=1, messages=500)["rate"]
    assert simulated(rule="acknowledged", outstanding=64, messages=500)["rate"] == pytest.approx(alone, rel=1e-6)


def test_two_sided_is_bound_by_matching_and_by_the_handshake(simulated):
    told = dict(rule="two-sided", outstanding=64, messages=2000)
    assert simulated({"match_ns": 900}, **told)["rate"] == pytest.approx(1e9 / 900, rel=0.01)
    wild = {"match_ns": 900, "any_source_ns": 100}
    assert simulated(wild, **{**told, "rule": "two-sided-any"})["rate"] == pytest.approx(1e6, rel=0.01)
    copied = simulated({"match_ns": 900, "eager_copy_bytes_per_s": 1e9}, **told, size_bytes=4000)["rate"]
    assert copied == pytest.approx(1e9 / (900 + 4000), rel=0.01)
    eager = simulated(rule="two-sided", size_bytes=512, messages=1)["latency_mean_s"]
    matched_first = simulated({"rendezvous_bytes": 512}, rule="two-sided", size_bytes=512, messages=1)["latency_mean_s"]
    handshake = one_way_ns(0) + back_ns()
    assert matched_first - eager == pytest.approx(handshake * 1e-9, rel=0.01)


def test_batches_gather_while_the_network_is_busy(simulated):
    """What a batch costs is shared by its messages: a core that is quicker than the link fills it with payload."""
    changes = {
        "batch_bytes": 60000,
        "packet_bytes": 65536,
        "nic_message_ns": 20000,
        "header_bytes": 2,
        "packet_header_bytes": 0,
    }
    told = dict(base=DIRECT, outstanding=4096, messages=200000)
    assert simulated({**changes, "batch_bytes": 0}, **told)["rate"] == pytest.approx(1e9 / 20000, rel=0.02)
    gathered = simulated(changes, **told)["rate"]
    assert gathered > 30e6  # the link carries 100 million a second
    few = simulated(changes, **{**told, "rule": "acknowledged", "messages": 100})["rate"]
    assert few == pytest.approx(
        simulated({**changes, "batch_bytes": 0}, **told | {"outstanding": 1, "messages": 100})["rate"]
    )


@pytest.mark.parametrize("rule", network_model.RULES)
@pytest.mark.parametrize("pattern", network_model.PATTERNS)
@pytest.mark.parametrize("size", [8, 9000])
def test_every_message_arrives_once_and_in_the_order_of_the_rule(simulated, rule, pattern, size):
    changes = {"parallel_links": [2, 1, 2], "rendezvous_bytes": 4096, "reorder_buffer_messages": 5, "match_ns": 50}
    answer = simulated(
        changes, nodes=30, cores=3, size_bytes=size, rule=rule, outstanding=9, pattern=pattern, messages=40
    )
    senders = 3 * (15 if pattern == "pair" else 30)
    assert answer["sent"] == answer["delivered"] == 40 * senders
    assert answer["delivered_bytes"] == 40 * senders * size
    if rule in IN_ORDER:
        assert answer["released_out_of_order"] == 0
    assert answer["most_buffered"] <= 5


def test_relaxed_messages_overtake_and_the_others_do_not(simulated):
    """Packets of several messages share slow parallel links; nothing overtakes on one path."""
    told = dict(nodes=64, cores=8, size_bytes=2000, outstanding=16, pattern="random", messages=100)
    changes = {"parallel_links": [2, 2, 2], "link_bytes_per_s": 3e8, "reorder_buffer_messages": 16}
    relaxed = simulated(changes, **told)
    assert relaxed["overtaken_share"] > 0.05 and relaxed["overtaken_distance"] >= 1
    assert relaxed["released_out_of_order"] > 0
    assert simulated(changes, **told, rule="ordered")["overtaken_share"] == 0
    buffered = simulated(changes, **told, rule="reorder-buffer")
    assert buffered["overtaken_share"] > 0.05 and 1 < buffered["most_buffered"] <= 16
    assert buffered["released_out_of_order"] == 0


def test_a_small_reorder_buffer_holds_the_sender_back(simulated):
    told = dict(rule="reorder-buffer", outstanding=64, messages=2000)
    wide, narrow = (simulated({"reorder_buffer_messages": n}, **told)["rate"] for n in (64, 2))
    assert narrow == pytest.approx(simulated(outstanding=2, messages=2000)["rate"], rel=0.01)
    assert wide > 2 * narrow


def test_the_seed_decides(simulated):
    told = dict(nodes=40, cores=4, outstanding=8, pattern="random", size_bytes=3000, messages=50)

    clocks = ("wall_s", "cpu_s", "events_per_s", "peak_memory_bytes")

    def told_apart(answer):
        return {name: value for name, value in answer.items() if name not in clocks}

    for changes in ({}, {"pattern": "neighbour", "nodes": 30}):  # the peers are drawn, and the ways
        links = {"link_bytes_per_s": 3e8}
        first, again, other = (told_apart(simulated(links, seed=seed, **{**told, **changes})) for seed in (7, 7, 8))
        assert first == again
        assert first != other


DRAWN = Traffic(40, 4, 3000, "relaxed", 8, "random", 7, 50)


def test_a_point_has_as_many_seeds_as_an_interval_needs(engine, monkeypatch):
    model = model_file.checked({**PLAIN, "link_bytes_per_s": 3e8}, "test")
    answers = simulate.simulate_seeds(engine, model, DRAWN)
    assert len(answers) == simulate.SEEDS and len({answer["rate"] for answer in answers}) == simulate.SEEDS
    assert answers[0]["rate"] == engine.simulate(model, DRAWN)["rate"]  # the seed that was told is the first
    monkeypatch.setattr(simulate, "EVENTS", 3 * network_model.events_of(model, DRAWN))
    assert len(simulate.simulate_seeds(engine, model, DRAWN)) == 3
    monkeypatch.setattr(simulate, "EVENTS", 1)
    assert len(simulate.simulate_seeds(engine, model, DRAWN)) == 1


def test_where_nothing_is_drawn_a_few_seeds_are_enough(engine):
    model = model_file.checked(DIRECT, "test")
    answers = simulate.simulate_seeds(engine, model, Traffic(2, 1, 8, "relaxed", 4, "pair", 1, 100))
    assert len(answers) == simulate.ALIKE and len({answer["rate"] for answer in answers}) == 1


def test_intervals_are_those_of_seeds(shmem_mt, tmp_path):
    """Without enough seeds there is a range, and no confidence is told."""
    told = ("--nodes", "27", "--cores", "2", "--sizes", "3000", "--rules", "relaxed", "--messages", "40")
    status, stdout, stderr = shmem_mt("simulate", *told, "--out", tmp_path / "out")
    assert status == 0, stderr
    (rate,) = (point for point in read_results(tmp_path / "out") if point["metric"] == "rate")
    low, high = rate["interval"]
    assert rate["starts"] == len(set(rate["samples"])) == simulate.SEEDS and rate["confidence"] == 0.95
    assert min(rate["samples"]) <= low < rate["median"] < high <= max(rate["samples"])
    assert "(10 seeds, " in stdout
    path = tmp_path / "model.json"
    path.write_text(json.dumps(DIRECT), encoding="utf-8")
    status, stdout, stderr = shmem_mt(
        *("simulate", "--model", path, "--cores", "1", "--sizes", "8", "--rules", "relaxed", "--messages", "40"),
        *("--out", tmp_path / "direct"),
    )
    assert status == 0, stderr
    (rate,) = (point for point in read_results(tmp_path / "direct") if point["metric"] == "rate")
    assert rate["starts"] == simulate.ALIKE and rate["confidence"] is None


def test_more_active_cores_share_their_processors(simulated):
    alone, crowded = (
        simulated({"processors_per_node": 2}, cores=c, outstanding=64, messages=2000)["rate"] for c in (2, 8)
    )
    assert crowded == pytest.approx(alone, rel=0.02)


def test_results_scale_with_time(simulated):
    """From nanoseconds to seconds: the event queue follows. All times here are whole picoseconds in each scale, so the
    same things happen in the same order."""
    times = [key for key in PLAIN if key.endswith("_ns")]
    rates = [key for key in PLAIN if key.endswith("_per_s")]
    told = dict(nodes=27, cores=4, outstanding=8, pattern="random", size_bytes=800, messages=600)
    plain = simulated(**told)
    for factor in (0.001, 1000, 100000):
        changes = {key: PLAIN[key] * factor for key in times} | {key: PLAIN[key] / factor for key in rates}
        scaled = simulated(changes, **told)
        assert scaled["events"] == plain["events"] and scaled["overtaken_share"] == plain["overtaken_share"]
        assert scaled["latency_mean_s"] == pytest.approx(plain["latency_mean_s"] * factor, rel=1e-6)


def test_gemini_has_the_published_shape(engine):
    """Ibrahim et al. (2014): relaxed over strict order up to 4.6 times, for small messages; more active cores needed
    under strict order. Shan et al. (2011): one-sided over two-sided 5 times for 8 bytes. The cut-over is near 4 KiB."""
    gemini = network_model.load("gemini")
    assert 3000 <= network_model.cut_over_bytes(gemini) <= 5000

    def rate(rule, size, cores):
        return engine.simulate(gemini, Traffic(2, cores, size, rule, 16, "pair"))["rate"]

    small = {rule: rate(rule, 8, 1) for rule in network_model.RULES}
    assert 4 <= small["relaxed"] / small["acknowledged"] <= 5.2
    assert 4 <= small["relaxed"] / small["two-sided"] <= 6
    assert small["relaxed"] / small["ordered"] < 1.2
    ratios = [rate("relaxed", size, 1) / rate("acknowledged", size, 1) for size in (8, 64, 512, 2048, 65536, 1 << 20)]
    assert max(ratios) == ratios[0] and ratios[-1] < 1.2

    def cores_needed(rule):
        found = [{"median": rate(rule, 8, c), "params": {"cores": c}} for c in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48)]
        return simulation.cores_to_peak(found)["params"]["cores"]

    assert 3 * cores_needed("relaxed") <= cores_needed("acknowledged")


BAD_MODELS = (
    ({"hop_latency_ns": -1}, "hop_latency_ns -1: it must be a number from 0 to"),
    ({"hop_latency_ns": math.nan}, "hop_latency_ns NaN: it must be a number from 0 to"),
    ({"hop_latency_ns": math.inf}, "hop_latency_ns Infinity"),
    ({"hop_latency_ns": "fast"}, 'hop_latency_ns "fast"'),
    ({"hop_latency_ns": True}, "hop_latency_ns true"),
    ({"link_bytes_per_s": 0}, "link_bytes_per_s 0: it must be a number from 1000 to"),
    ({"link_bytes_per_s": -3e9}, "link_bytes_per_s -3000000000.0"),
    ({"nic_bytes_per_s": 1e30}, "nic_bytes_per_s 1e+30"),
    ({"packet_bytes": 0}, "packet_bytes 0: it must be a number from 64 to"),
    ({"parallel_links": [1, 2]}, "parallel_links [1, 2]: it must be three numbers from 1 to 16"),
    ({"parallel_links": [1, 2, 0]}, "parallel_links[2] 0: it must be a whole number from 1 to 16"),
    ({"nodes_per_router": 1.5}, "nodes_per_router 1.5: it must be a whole number from 1 to 64"),
    ({"reorder_buffer_messages": 0}, "reorder_buffer_messages 0"),
    ({"topology": "ring"}, 'topology "ring": it must be direct or torus'),
    ({"topology": ["torus"]}, 'topology ["torus"]'),
    ({"fence": "never"}, 'fence "never": it must be ordered or reorder-buffer or acknowledged'),
    ({"name": ""}, 'name "": it must be a text'),
    ({"hop_latency_us": 1}, "no parameter is called hop_latency_us; did you mean hop_latency_ns?"),
    ({"topology": "direct"}, "link_bytes_per_s 1000000000.0: it must be a list of 1 to 16 rates"),
    ({"topology": "direct", "link_bytes_per_s": [1e9, -1]}, "link_bytes_per_s[1] -1: it must be a number from 1000"),
    ({"topology": "direct", "link_bytes_per_s": [1e9], "parallel_links": [1, 1, 1]}, "parallel_links is of a torus"),
)


@pytest.mark.parametrize("changes, message", BAD_MODELS)
def test_bad_models_are_told_what_is_wrong(shmem_mt, tmp_path, changes, message):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**PLAIN, **changes}), encoding="utf-8")
    status, _, stderr = shmem_mt("simulate", "--model", path, "--out", tmp_path / "out")
    assert status == 2 and message in stderr
    assert not (tmp_path / "out").exists()


def test_the_schema_beside_the_models_is_up_to_date():
    """`python -m shmem_mt.simulation.model_file` writes it anew."""
    with open(model_file.SCHEMA, encoding="utf-8") as file:
        written = json.load(file)
    assert written == json.loads(model_file.schema())
    torus = written["$defs"]["Torus"]["properties"]
    assert torus["hop_latency_ns"]["minimum"] == 0 and torus["hop_latency_ns"]["maximum"] == 1e9
    assert written["$defs"]["Torus"]["additionalProperties"] is False


def test_all_defaults_are_in_a_checked_model():
    model = model_file.checked(DIRECT, "test")
    assert set(model_file.KEYS) - set(model) == {"parallel_links"}
    assert (model["window"], model["reorder_buffer_messages"], model["header_bytes"]) == ("sliding", 64, 20)
    assert model_file.checked(PLAIN, "test")["parallel_links"] == [1, 1, 1]
    assert model_file.limits("packet_bytes") == (64, 1 << 24)


def test_a_missing_key_is_named(shmem_mt, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({k: v for k, v in PLAIN.items() if k != "small_core_ns"}), encoding="utf-8")
    status, _, stderr = shmem_mt("simulate", "--model", path, "--out", tmp_path / "out")
    assert status == 2 and "small_core_ns is missing: it must be a number from 0" in stderr


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", "\x00", "[" * 100000])
def test_a_model_file_that_is_none(shmem_mt, tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    status, _, stderr = shmem_mt("simulate", "--model", path, "--out", tmp_path / "out")
    assert status == 2 and str(path) in stderr


BAD_COMMANDS = (
    (("--model", "aries"), "--model aries: No such file"),
    (("--nodes", "0"), "'0' is not a number"),
    (("--nodes", "1"), "--nodes 1: there must be 2 at least"),
    (("--nodes", "3", "--pattern", "pair"), "--nodes 3"),
    (("--nodes", "2000000"), "--nodes 2000000: the simulator takes up to 1000000"),
    (("--nodes", "1000000", "--cores", "1024"), "GiB of memory"),
    (("--cores", "5000"), "--cores 5000: the simulator takes up to 1024"),
    (("--sizes", "-8"), "-8"),
    (("--sizes", "1000000000000"), "--sizes 1000000000000: the simulator takes up to"),
    (("--outstanding", "0"), "'0' is not a number between 1 and 4096"),
    (("--outstanding", "1,2"), "'1,2' is not one number"),
    (("--messages", "1000000000", "--nodes", "1000"), "events, more than"),
    (("--rules", "relaxed,lax"), "no rule is called lax"),
    (("--pattern", "star"), "invalid choice: 'star'"),
    (("--seed", "x"), "'x' is not a number"),
    (("--hold-back", "1"), "'1' is not a number from 0 to below 1"),
    (("--calibrate", "nowhere"), "nowhere: no such run folder"),
    (("--calibrate", "nowhere", "--model", "gemini"), "--calibrate makes a model"),
)


@pytest.mark.parametrize("arguments, message", BAD_COMMANDS)
def test_bad_commands_are_told_what_is_wrong(shmem_mt, tmp_path, arguments, message):
    status, _, stderr = shmem_mt("simulate", *arguments, "--out", tmp_path / "out")
    assert status == 2 and message in stderr
    assert not (tmp_path / "out").exists()


def test_a_direct_model_is_of_two_nodes(shmem_mt, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(DIRECT), encoding="utf-8")
    status, _, stderr = shmem_mt("simulate", "--model", path, "--nodes", "4", "--out", tmp_path / "out")
    assert status == 2 and "is direct, which is 2 nodes" in stderr


def test_nothing_runs_on_the_simulated_fabric(shmem_mt, tmp_path):
    status, _, stderr = shmem_mt("run", "--fabric", "simulated", "--out", tmp_path / "out")
    assert status == 2 and "no fabric is called simulated" in stderr


@pytest.mark.long
def test_the_command_leaves_results_charts_and_a_report(shmem_mt, tmp_path):
    out = tmp_path / "out"
    told = ("--nodes", "2,8", "--cores", "1,2,8", "--sizes", "8,8192", "--messages", "40", "--seed", "5")
    status, stdout, stderr = shmem_mt("simulate", *told, "--out", out)
    assert status == 0, stderr
    assert "seed 5" in stdout and "cores to 90 % of the peak" in stdout and "the fair baseline" in stdout
    results = read_results(out)
    assert all(point["valid"] for point in results)
    rates = [p for p in results if p["metric"] == "rate"]
    assert len(rates) == 2 * 3 * 2 * len(network_model.RULES)
    assert {p["params"]["mechanism"] for p in rates if p["params"]["size_bytes"] == 8192} == {"large"}
    assert "--seed 5" in (out / "command.txt").read_text(encoding="utf-8")
    for slug in ("simulated-ratio-by-size", "simulated-rate-by-cores", "simulated-rate-by-nodes"):
        assert (out / f"{slug}.svg").exists() and (out / f"{slug}.png").exists()
    status, _, stderr = shmem_mt("report", out)
    assert status == 0, stderr
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Simulated: message rate by active cores" in page and "relaxed over acknowledged" in page
