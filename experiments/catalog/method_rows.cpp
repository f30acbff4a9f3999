#include "experiments/catalog/method_rows.h"

namespace prefgrid {
namespace {

Field integer(std::string_view name, std::int64_t value, double minimum, double maximum,
              std::string_view help) {
  return {name, FieldType::integer, Value(value), minimum, maximum, {}, help};
}

Field real(std::string_view name, double value, double minimum, double maximum,
           std::string_view help) {
  return {name, FieldType::real, Value(value), minimum, maximum, {}, help};
}

Field choice(std::string_view name, std::string_view value, std::vector<std::string_view> choices,
             std::string_view help) {
  return {name, FieldType::text, Value(std::string(value)), 0, 0, std::move(choices), help};
}

Field k_field() {
  return integer("k", 10, 1, 1024, "candidates per position: the policy's k likeliest tokens");
}

Field reward_scale_field() {
  return choice("reward_scale", "step", {"step", "raw"},
                "step: rewards divided by their mean deviation within a candidate set of the "
                "user's given items; raw: as they are");
}

Field scale_items_field() {
  return integer("scale_items", 8, 1, 4096,
                 "given items (first by hash) that reward_scale step is measured on");
}

MethodRow zero_shot_row() {
  MethodRow row;
  row.name = "zero_shot";
  row.summary = "the base policy, no reward, no examples";
  row.source = "baseline of arXiv 2512.23067";
  row.decoders = {"greedy"};
  return row;
}

MethodRow icl_row() {
  MethodRow row;
  row.name = "icl";
  row.summary = "in-context learning: the user's own given items as examples in the prompt";
  row.source = "baseline of arXiv 2512.23067";
  row.fields = {
      integer("shots", 4, 1, 64, "examples: the first given items by hash"),
      integer("shot_prompt_tokens", 48, 0, 4096, "tokens kept of each example's prompt (its end)")};
  row.decoders = {"greedy"};
  return row;
}

MethodRow global_bt_row() {
  MethodRow row;
  row.name = "global_bt";
  row.version = 2;  // 1 ran each pair's prompt twice, padded
  row.summary = "one Bradley-Terry reward model for all users: a fine-tuned backbone and a head";
  row.source = "Bradley-Terry reward modelling, as in arXiv 2512.23067";
  row.fields = {
      real("learning_rate", 5e-4, 1e-8, 1, "peak of the cosine schedule (AdamW)"),
      integer("batch", 32, 1, 4096, "pairs per step"),
      integer("epochs", 1, 1, 1000, "passes over the seen users' train pairs"),
      real("weight_decay", 0.01, 0, 10, "decoupled, on matrices only"),
  };
  row.has_train = true;
  row.trains_model = true;
  row.has_reward = true;
  row.train_reads_seed = true;
  row.decoders = {"args"};
  return row;
}

MethodRow lore_row() {
  MethodRow row;
  row.name = "lore";
  row.summary = "low-rank reward modelling: shared reward directions, a simplex mixture per user";
  row.source = "LoRe (Bose et al. 2025), the authors' defaults";
  row.fields = {
      choice("features_from", "global_bt", {"global_bt", "bow"},
             "the frozen features: global_bt's backbone, or hashed bags of words"),
      integer("rank", 5, 1, 256, "reward directions B"),
      real("learning_rate", 0.5, 1e-6, 100, "Adam, full batch, of V and W"),
      integer("steps", 1000, 1, 1'000'000, "of training V and W"),
      choice("choose_step", "valid", {"valid", "last"},
             "which step's V and W stay: the best by the seen users' valid loss, or the last"),
      real("adapt_learning_rate", 0.1, 1e-6, 100, "Adam, full batch, of a new user's weights"),
      integer("adapt_steps", 500, 1, 1'000'000, "of fitting a new user's weights"),
  };
  row.reads_features = true;
  row.has_train = true;
  row.has_adapt = true;
  row.has_reward = true;
  row.train_reads_seed = true;
  row.decoders = {"args"};
  return row;
}

}  // namespace

std::vector<MethodRow> method_rows() {
  return {zero_shot_row(), icl_row(), global_bt_row(), lore_row()};
}

std::vector<DecoderRow> decoder_rows() {
  DecoderRow greedy;
  greedy.name = "greedy";
  greedy.summary = "the policy's likeliest token at every step";

  DecoderRow args;
  args.name = "args";
  args.summary =
      "reward-guided: of the k likeliest tokens the one with the highest "
      "log-probability + weight x reward of the text so far";
  args.fields = {k_field(), real("weight", 1.0, 0, 1e6, "w, of the scaled reward"),
                 reward_scale_field(), scale_items_field()};
  args.needs_reward = true;
  return {greedy, args};
}

std::vector<KindRow> kind_rows() {
  const Field items = integer("items", 8, 1, 1'000'000, "test items per user, the first by hash");
  return {
      {"embed.lm",
       1,
       "last hidden states of both sides of every pair",
       {max_prompt_tokens_field()}},
      {"embed.bow",
       1,
       "hashed bags of words of both sides of every pair",
       {integer("dimensions", 8192, 2, 1 << 24, "hash buckets F")}},
      {"rm_accuracy", 1, "share of a user's test pairs that the reward orders right", {}},
      {"policy_accuracy",
       1,
       "share of a user's test pairs whose preferred side the guided policy finds likelier",
       {k_field(), items, scale_items_field(), reward_scale_field(), max_prompt_tokens_field()}},
      {"generate",
       1,
       "completions of a user's test prompts, against the user's own",
       {items, max_prompt_tokens_field(),
        integer("max_new_tokens", 32, 1, 4096, "tokens generated per item, EOS included")}},
  };
}

Field max_prompt_tokens_field() {
  return integer("max_prompt_tokens", 96, 0, 1 << 20,
                 "tokens kept of a prompt (its end); responses are never cut");
}

std::vector<double> policy_accuracy_weights() {
  return {0, 0.5, 1, 2, 4, 8, 16};
}

}  // namespace prefgrid
