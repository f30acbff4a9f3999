#include "coordinator/plan.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

#include "tests/coordinator/plan/builders.h"
#include "tests/support/seed.h"

using namespace prefgrid;           // NOLINT: tests only
using namespace prefgrid::testing;  // NOLINT: tests only

namespace {

std::set<JobKey> keys_of(const Plan& plan) {
  std::set<JobKey> keys;
  for (const PlannedJob& job : plan.jobs) keys.insert(job.key);
  return keys;
}

// Stages of the jobs of `after` that `before` does not have, with their number.
std::map<std::string, std::size_t> added(const Plan& before, const Plan& after) {
  const std::set<JobKey> old = keys_of(before);
  std::map<std::string, std::size_t> out;
  for (const PlannedJob& job : after.jobs) out[job.stage] += old.contains(job.key) ? 0 : 1;
  std::erase_if(out, [](const auto& entry) { return entry.second == 0; });
  return out;
}

std::set<std::string> touched(const Plan& before, const Plan& after) {
  std::set<std::string> out;
  for (const auto& [stage, count] : added(before, after)) out.insert(stage);
  return out;
}

Plan good_plan(const std::string& text = base_spec, const DatasetSummary& summary = users(4)) {
  auto plan = plan_of(text, summary);
  CAPTURE(plan.ok() ? "" : plan.error().message);
  REQUIRE(plan.ok());
  return *std::move(plan);
}

const std::string& method_of(const PlannedJob& job) {
  return job.cells.front().method;
}

}  // namespace

TEST_CASE("a job stands after its dependencies, which are its inputs, and keys are unique") {
  const Plan plan = good_plan();
  CHECK(keys_of(plan).size() == plan.jobs.size());
  for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
    const PlannedJob& job = plan.jobs[i];
    std::set<JobKey> inputs;
    for (const auto& [name, id] : job.spec.inputs) {
      if (const auto* key = std::get_if<JobKey>(&id)) inputs.insert(*key);
    }
    std::set<JobKey> dependencies;
    for (const std::uint32_t dependency : job.dependencies) {
      REQUIRE(dependency < i);
      dependencies.insert(plan.jobs[dependency].key);
    }
    CHECK(dependencies == inputs);
    CHECK(dependencies.size() == job.dependencies.size());
    CHECK(job.spec.inputs.at("dataset") == InputRef(digest()));
    CHECK(*job_key(job.spec) == job.key);
    CHECK_FALSE(job.cells.empty());
  }
}

TEST_CASE("a small grid has the jobs that its description promises") {
  // 2 models, 2 seeds, 2 seen and 2 unseen users.
  const Plan plan = good_plan();
  CHECK(count_stage(plan, "pretrain") == 2);
  CHECK(count_stage(plan, "embed") == 1 + 2 * 2);              // bow; global_bt of each model, seed
  CHECK(count_stage(plan, "train") == 2 * 2 + 2 * 2 + 2 * 2);  // global_bt; lore bow x 2; lore lm
  CHECK(count_stage(plan, "adapt") == 2 * (2 * 2 + 2 * 2));    // unseen users only
  // Rewards: global_bt 2 x 2, lore bow 2 ranks x 2 seeds (one set for both models), lore lm 2 x 2.
  CHECK(count_stage(plan, "rm_accuracy") == 4 * (4 + 4 + 4));
  // zero_shot and icl once per policy; bow guides both policies; the others their own.
  CHECK(count_stage(plan, "policy_accuracy") == 4 * (2 * 2 + 4 + 4 * 2 + 4));
  CHECK(count_stage(plan, "generate") == 4 * (2 * 2 + 4 + 4 * 2 + 4));
  CHECK(plan.stages == std::vector<std::string>{"pretrain", "embed", "train", "adapt",
                                                "rm_accuracy", "policy_accuracy", "generate"});
}

TEST_CASE("the inputs of a job are those of the contract") {
  using Names = std::set<std::string>;
  std::map<std::string, std::set<Names>> inputs;
  for (const PlannedJob& job : good_plan().jobs) {
    Names names;
    for (const auto& [name, id] : job.spec.inputs) names.insert(name);
    const std::string lm = job.cells.front().backbone == "bow" ? " bow" : "";
    inputs[job.spec.kind + " " + method_of(job) + lm + " " + job.cells.front().user_group].insert(
        names);
  }
  const auto only = [&](const std::string& kind) {
    CAPTURE(kind);
    REQUIRE(inputs[kind].size() == 1);
    return *inputs[kind].begin();
  };
  CHECK(only("pretrain pretrain ") == Names{"dataset"});
  CHECK(only("train.global_bt global_bt ") == Names{"dataset", "model"});
  CHECK(only("embed.lm embed ") == Names{"dataset", "backbone"});
  CHECK(only("embed.bow embed bow ") == Names{"dataset"});
  CHECK(only("train.lore lore ") == Names{"dataset", "features"});
  CHECK(only("adapt.lore lore unseen") == Names{"dataset", "features", "train"});
  CHECK(only("rm_accuracy global_bt seen") == Names{"dataset", "features", "train"});
  CHECK(only("rm_accuracy lore bow seen") == Names{"dataset", "features", "train"});
  CHECK(only("rm_accuracy lore bow unseen") == Names{"dataset", "features", "train", "adapt"});
  CHECK(only("generate.args lore unseen") ==
        Names{"dataset", "policy", "backbone", "features", "train", "adapt"});
  CHECK(only("policy_accuracy zero_shot seen") == Names{"dataset", "policy"});
  CHECK(only("generate.greedy icl unseen") == Names{"dataset", "policy"});
}

TEST_CASE("parameters hold what differs from the defaults and nothing else") {
  for (const PlannedJob& job : good_plan().jobs) {
    const ValueMap& parameters = job.spec.parameters;
    if (job.spec.kind == "generate.args" && method_of(job) == "lore" &&
        job.cells.front().config == "features_from=bow,rank=1" && job.cells.front().user == "u1") {
      CHECK(parameters ==
            ValueMap{{"method", "lore"},
                     {"method_version", 1},
                     {"method_fields", ValueMap{{"features_from", "bow"}, {"rank", 1}}},
                     {"user", "u1"},
                     {"items", 2},
                     {"k", 4}});
    }
    if (job.spec.kind == "embed.lm") CHECK(parameters.empty());
    if (job.spec.kind == "train.lore" && job.cells.front().backbone == "tiny") {
      CHECK(parameters.empty());
    }
    if (job.spec.kind == "pretrain" && job.cells.front().policy == "tiny") {
      CHECK(parameters == ValueMap{{"tokens", 1000}});
    }
  }
}

TEST_CASE("a seed is read by training alone, and a greedy cell is one whatever seeds are listed") {
  for (const PlannedJob& job : good_plan().jobs) {
    CHECK(job.spec.seed.has_value() == job.spec.kind.starts_with("train."));
    const std::string& method = method_of(job);
    const bool seeded = method == "lore" || method == "global_bt" ||
                        (method == "embed" && job.cells.front().backbone != "bow");
    CHECK(job.cells.front().seed.has_value() == seeded);
  }
  const Plan one = good_plan(replaced(base_spec, "[0, 1]", "[0]"));
  const Plan two = good_plan();
  for (const PlannedJob& job : two.jobs) {
    if (method_of(job) != "zero_shot" && method_of(job) != "icl") continue;
    CHECK(keys_of(one).contains(job.key));
  }
}

TEST_CASE("labels place each figure once in the tables") {
  using Place = std::tuple<std::string, std::string, std::string, std::string, std::string,
                           std::string, std::optional<std::uint64_t>, std::string>;
  std::set<Place> places;
  std::size_t cells = 0;
  for (const PlannedJob& job : good_plan().jobs) {
    for (const CellLabel& cell : job.cells) {
      ++cells;
      places.insert({job.stage, cell.method, cell.config, cell.backbone, cell.policy, cell.decoding,
                     cell.seed, cell.user});
      if (job.stage == "generate" && cell.decoding == "args(k=4)") CHECK(cell.weight == 1.0);
      if (job.stage == "generate" && cell.decoding == "greedy") CHECK_FALSE(cell.weight);
      if (job.stage == "rm_accuracy") CHECK(cell.policy.empty());
      if (!cell.user.empty()) {
        CHECK(cell.user_group == ((cell.user.back() - '0') % 2 == 0 ? "seen" : "unseen"));
      }
    }
  }
  CHECK(places.size() == cells);
}

TEST_CASE("a reward on words is judged once and guides every policy") {
  std::set<std::string> policies;
  for (const PlannedJob& job : good_plan().jobs) {
    const CellLabel& cell = job.cells.front();
    if (cell.method == "lore" && cell.backbone == "bow" && job.stage == "generate") {
      policies.insert(cell.policy);
    }
  }
  CHECK(policies == std::set<std::string>{"tiny", "wide"});
}

TEST_CASE("policies that are listed cross with every reward backbone") {
  const std::string text = replaced(base_spec, "seeds: [0, 1]", "policies: [tiny]\nseeds: [0]");
  std::set<std::pair<std::string, std::string>> pairs;
  for (const PlannedJob& job : good_plan(text).jobs) {
    const CellLabel& cell = job.cells.front();
    if (job.stage == "generate") pairs.insert({cell.backbone, cell.policy});
  }
  CHECK(pairs == std::set<std::pair<std::string, std::string>>{
                     {"", "tiny"}, {"bow", "tiny"}, {"tiny", "tiny"}, {"wide", "tiny"}});
}

TEST_CASE("a reward and a policy of different vocabularies are refused with the model's place") {
  std::string text = replaced(base_spec, "tokens: 2000", "tokens: 2000, vocab_size: 2048");
  CHECK(plan_of(text).ok());  // each model guides itself
  text = replaced(text, "seeds: [0, 1]", "policies: [tiny, wide]");
  const auto plan = plan_of(text);
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message.find("vocab_size 2048") != std::string::npos);
  CHECK(plan.error().message.starts_with("spec.yaml:"));
}

TEST_CASE("prompts that do not fit a model's context are refused with the model's place") {
  const auto plan = plan_of(replaced(base_spec, "{tokens: 1000}", "{max_tokens: 128}"));
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message.starts_with("spec.yaml:4:3: model tiny has a context of"));
}

TEST_CASE("features of an ambiguous global_bt are refused; of an unlisted one they are defaults") {
  const auto plan =
      plan_of(replaced(base_spec, "- global_bt\n", "- global_bt: {epochs: [1, 2]}\n"));
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message.starts_with("spec.yaml:11:5: features_from: global_bt is ambiguous"));

  const Plan listed = good_plan();
  const Plan unlisted = good_plan(replaced(base_spec, "  - global_bt\n", ""));
  CHECK(added(listed, unlisted).empty());
  const Plan other = good_plan(replaced(base_spec, "- global_bt\n", "- global_bt: {epochs: 2}\n"));
  for (const PlannedJob& job : other.jobs) {
    if (job.spec.kind == "train.global_bt") CHECK(job.spec.parameters.at("epochs") == Value(2));
  }
  CHECK(count_stage(other, "train") == count_stage(listed, "train"));
}

TEST_CASE("comments, key order, spelling and names never change a plan's jobs") {
  std::mt19937_64 random(test_seed());
  const std::string heads[] = {"experiment: test\n", "dataset: {kind: jsonl, path: data.jsonl}\n",
                               "seeds: [0, 1]\n",
                               "evaluation: {policy_items: 2, max_new_tokens: 8, k: 3}\n",
                               "decoding: [greedy, {args: {weight: 0.5, k: 4}}]\n"};
  const std::string weights[] = {"0.5", "5e-1", "0.50", "+0.5", ".5"};
  const std::string rates[] = {"0.00001", "1e-5", "1.0e-05", "10e-6"};
  const auto permuted = [&](std::vector<std::string> fields) {
    std::shuffle(fields.begin(), fields.end(), random);
    std::string out;
    for (const std::string& field : fields) out += (out.empty() ? "" : ", ") + field;
    return "{" + out + "}";
  };
  std::optional<std::set<JobKey>> expected;
  std::vector<JobKey> order;
  for (int round = 0; round < 40; ++round) {
    const std::string lr = "learning_rate: " + rates[random() % 4];
    std::vector<std::string> sections = {
        heads[0],
        "dataset: " + permuted({"kind: jsonl", "path: data.jsonl"}) + "\n",
        heads[2],
        "evaluation: " + permuted({"policy_items: 2", "max_new_tokens: 8", "k: 3"}) + "\n",
        "decoding: [greedy, {args: " + permuted({"weight: " + weights[random() % 5], "k: 4"}) +
            "}]\n",
        "models: " +
            permuted(
                {"tiny: " + permuted({"tokens: 1000", "layers: 2", lr}), "wide: {tokens: 2000}"}) +
            "\n",
        "methods:\n  - zero_shot  # nothing\n  - lore: " +
            permuted({"rank: 2", "features_from: bow", "steps: 7"}) + "\n"};
    std::shuffle(sections.begin(), sections.end(), random);
    std::string text = random() % 2 ? "# a comment\n\n" : "";
    for (const std::string& section : sections) text += section + (random() % 2 ? "# more\n" : "");
    CAPTURE(text);
    const Plan plan = good_plan(text);
    std::vector<JobKey> keys;
    for (const PlannedJob& job : plan.jobs) keys.push_back(job.key);
    if (order.empty()) order = keys;
    CHECK(keys == order);
  }
}

TEST_CASE("a model's name changes no key") {
  const Plan plan = good_plan(replaced(base_spec, "  tiny:", "  zebra:"));
  CHECK(keys_of(plan) == keys_of(good_plan()));
}

TEST_CASE("models of equal fields share their jobs, which then fill several cells") {
  const Plan one = good_plan();
  const Plan twin = good_plan(replaced(base_spec, "tiny: {", "twin: {tokens: 1000}\n  tiny: {"));
  CHECK(keys_of(twin) == keys_of(one));
  for (const PlannedJob& job : twin.jobs) {
    if (job.stage == "pretrain") CHECK(job.cells.size() == (job.cells[0].policy == "wide" ? 1 : 2));
  }
  CHECK(twin.notes.size() == 1);
}

TEST_CASE("each change touches exactly the stages that read it") {
  using Stages = std::set<std::string>;
  const Plan before = good_plan();
  const Stages everything = {"pretrain",    "embed",           "train",   "adapt",
                             "rm_accuracy", "policy_accuracy", "generate"};
  const Stages after_train = {"train", "adapt", "rm_accuracy", "policy_accuracy", "generate"};
  const auto change = [&](const char* from, const char* to) {
    return touched(before, good_plan(replaced(base_spec, from, to)));
  };
  CHECK(change("tokens: 1000", "tokens: 1001") == everything);
  CHECK(change("tokens: 1000", "tokens: 1000, pretrain_seed: 1") == everything);
  CHECK(change("[0, 1]", "[0, 2]") ==
        Stages{"embed", "train", "adapt", "rm_accuracy", "policy_accuracy", "generate"});
  CHECK(change("- global_bt\n", "- global_bt: {epochs: 2}\n") ==
        Stages{"embed", "train", "adapt", "rm_accuracy", "policy_accuracy", "generate"});
  CHECK(change("[1, 5]", "[2, 5]") == after_train);
  CHECK(change("rank: 5", "rank: 5, adapt_steps: 7") ==
        Stages{"adapt", "rm_accuracy", "policy_accuracy", "generate"});
  CHECK(change("policy_items: 2", "policy_items: 3") == Stages{"policy_accuracy"});
  CHECK(change("generation_items: 2", "generation_items: 3") == Stages{"generate"});
  CHECK(change("policy_items: 2", "policy_items: 2, max_new_tokens: 7") == Stages{"generate"});
  CHECK(change("policy_items: 2", "policy_items: 2, k: 3") == Stages{"policy_accuracy"});
  CHECK(change("policy_items: 2", "policy_items: 2, weights: [0, 3]") == Stages{"policy_accuracy"});
  CHECK(change("policy_items: 2", "policy_items: 2, bow_dimensions: 64") ==
        Stages{"embed", "train", "adapt", "rm_accuracy", "policy_accuracy", "generate"});
  CHECK(change("policy_items: 2", "policy_items: 2, max_prompt_tokens: 64") ==
        Stages{"embed", "train", "adapt", "rm_accuracy", "policy_accuracy", "generate"});
  CHECK(change("k: 4", "k: 5") == Stages{"generate"});
  CHECK(change("shots: 2", "shots: 3") == Stages{"policy_accuracy", "generate"});
  CHECK(change("experiment: test", "experiment: other") == Stages{});
  const auto other_data = plan_of(base_spec, users(4), digest("other"));
  REQUIRE(other_data.ok());
  CHECK(touched(before, *other_data) == everything);
}

TEST_CASE("weights and reward scales are nothing to a method without a reward") {
  const Plan before = good_plan();
  const Plan after = good_plan(replaced(base_spec, "policy_items: 2",
                                        "policy_items: 2, weights: [0, 3], scale_items: 3, "
                                        "reward_scale: raw"));
  for (const PlannedJob& job : after.jobs) {
    const bool unguided = method_of(job) == "zero_shot" || method_of(job) == "icl";
    if (unguided) CHECK(keys_of(before).contains(job.key));
  }
  CHECK(touched(before, after) == std::set<std::string>{"policy_accuracy"});
}

TEST_CASE("one more method, rank, model or user adds only its own cells") {
  const std::string without = replaced(base_spec, "  - icl: {shots: 2}\n", "");
  const auto icl = added(good_plan(without), good_plan());
  CHECK(icl == std::map<std::string, std::size_t>{{"policy_accuracy", 8}, {"generate", 8}});

  const auto rank = added(good_plan(replaced(base_spec, "[1, 5]", "[5]")), good_plan());
  CHECK(rank == std::map<std::string, std::size_t>{{"train", 2},
                                                   {"adapt", 4},
                                                   {"rm_accuracy", 8},
                                                   {"policy_accuracy", 16},
                                                   {"generate", 16}});
  for (const auto& [before, after] :
       {std::pair{good_plan(without), good_plan()},
        std::pair{good_plan(replaced(base_spec, "[1, 5]", "[5]")), good_plan()},
        std::pair{good_plan(base_spec, users(3)), good_plan(base_spec, users(4))}}) {
    for (const JobKey& key : keys_of(before)) CHECK(keys_of(after).contains(key));
  }
}

TEST_CASE("a new version of a method or a decoder re-runs its own cells alone") {
  Catalog rows = catalog();
  for (MethodRow& row : rows.methods) row.version += row.name == "icl" ? 1 : 0;
  const auto icl = plan_of(base_spec, users(4), digest(), rows);
  REQUIRE(icl.ok());
  for (const PlannedJob& job : icl->jobs) {
    CHECK(keys_of(good_plan()).contains(job.key) == (method_of(job) != "icl"));
  }
  Catalog decoders = catalog();
  for (DecoderRow& row : decoders.decoders) row.version += row.name == "args" ? 1 : 0;
  const auto args = plan_of(base_spec, users(4), digest(), decoders);
  REQUIRE(args.ok());
  for (const PlannedJob& job : args->jobs) {
    CHECK(keys_of(good_plan()).contains(job.key) == (job.spec.kind != "generate.args"));
  }
}

TEST_CASE("a decoder that draws has one cell per seed even for a method that does not") {
  Catalog rows = catalog();
  for (DecoderRow& row : rows.decoders) row.reads_seed = row.name == "greedy";
  const auto plan = plan_of(base_spec, users(2), digest(), rows);
  REQUIRE(plan.ok());
  std::set<std::optional<std::uint64_t>> seeds;
  for (const PlannedJob& job : plan->jobs) {
    if (job.spec.kind != "generate.greedy") continue;
    CHECK(job.spec.seed == job.cells.front().seed);
    seeds.insert(job.spec.seed);
  }
  CHECK(seeds == std::set<std::optional<std::uint64_t>>{0, 1});
}

TEST_CASE("a user with too few items is refused by name, or left out and said") {
  const auto refused = [](const DatasetSummary& summary, const std::string& text = base_spec) {
    const auto plan = plan_of(text, summary);
    REQUIRE_FALSE(plan.ok());
    return plan.error().message;
  };
  DatasetSummary summary = users(4);
  summary.users[1].completions[2] = 0;
  CHECK(
      refused(summary).starts_with("spec.yaml:2:10: user \"u1\" has 0 test completions, and "
                                   "generation needs at least 1"));
  CHECK(plan_of(replaced(base_spec, "generation_items: 2", "generation_items: 0"), summary).ok());
  const Plan skipped = good_plan(
      replaced(base_spec, "policy_items: 2", "policy_items: 2, skip_small_users: true"), summary);
  REQUIRE(skipped.notes.size() == 1);
  CHECK(skipped.notes[0].find("user \"u1\" is left out") != std::string::npos);
  CHECK(keys_of(skipped) == keys_of(good_plan(base_spec, [] {
          DatasetSummary rest = users(4);
          rest.users.erase(rest.users.begin() + 1);
          return rest;
        }())));

  summary = users(4);
  summary.users[2].pairs[2] = 0;
  CHECK(refused(summary).find("user \"u2\" has 0 test pairs") != std::string::npos);
  summary = users(4);
  summary.users[3].given = 0;
  CHECK(refused(summary).find("user \"u3\" has 0 given items") != std::string::npos);
}

TEST_CASE("a dataset without what the whole spec needs is refused with what to do") {
  const auto refused = [](const DatasetSummary& summary) {
    const auto plan = plan_of(base_spec, summary);
    REQUIRE_FALSE(plan.ok());
    return plan.error().message;
  };
  CHECK(refused({}).find("the dataset has no users") != std::string::npos);
  DatasetSummary summary = users(4);
  for (UserSummary& u : summary.users) u.completions[2] = 0;
  CHECK(refused(summary).find("set generation_items: 0") != std::string::npos);
  summary = users(4);
  for (UserSummary& u : summary.users) u.seen = false;
  CHECK(refused(summary).find("no seen user has train pairs") != std::string::npos);
  summary = users(4);
  for (UserSummary& u : summary.users) u.pairs[2] = 0;
  CHECK(refused(summary).find("the dataset has no test pairs") != std::string::npos);
}

TEST_CASE("parts that are switched off have no jobs") {
  const Plan plan = good_plan(replaced(base_spec, "policy_items: 2, generation_items: 2",
                                       "policy_items: 0, generation_items: 0"));
  CHECK(count_stage(plan, "policy_accuracy") == 0);
  CHECK(count_stage(plan, "generate") == 0);
  CHECK(count_stage(plan, "rm_accuracy") == 48);
}

TEST_CASE("jobs of one policy, backbone and user have one affinity, others have another") {
  std::map<std::tuple<std::string, std::string, std::string, std::optional<std::uint64_t>>,
           std::set<std::uint64_t>>
      by_cache;
  std::set<std::uint64_t> all;
  for (const PlannedJob& job : good_plan().jobs) {
    if (job.stage != "policy_accuracy" && job.stage != "generate") continue;
    const CellLabel& cell = job.cells.front();
    const auto seed = cell.backbone == "bow" ? std::nullopt : cell.seed;
    by_cache[{cell.policy, cell.backbone, cell.user, seed}].insert(job.affinity);
    all.insert(job.affinity);
  }
  for (const auto& [place, affinities] : by_cache) CHECK(affinities.size() == 1);
  CHECK(all.size() == by_cache.size());
}

TEST_CASE("a stored spec makes the same plan; one that this version cannot read is refused") {
  const auto spec = parse(base_spec);
  REQUIRE(spec.ok());
  auto stored = spec_from_value(to_value(*spec));
  REQUIRE(stored.ok());
  const auto plan = make_plan(*stored, users(4), digest(), catalog());
  REQUIRE(plan.ok());
  CHECK(keys_of(*plan) == keys_of(good_plan()));

  ExperimentSpec newer = *stored;
  newer.methods[0].name = "telepathy";
  CHECK_FALSE(make_plan(newer, users(4), digest(), catalog()).ok());
  newer = *stored;
  newer.methods[5].fields["rank"] = Value("five");
  CHECK_FALSE(make_plan(newer, users(4), digest(), catalog()).ok());
  newer = *stored;
  newer.evaluation["policy_items"] = Value(2.5);
  CHECK_FALSE(make_plan(newer, users(4), digest(), catalog()).ok());
  newer = *stored;
  newer.decoders[0].name = "psychic";
  CHECK_FALSE(make_plan(newer, users(4), digest(), catalog()).ok());
}
