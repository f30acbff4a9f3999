// Checks that nothing which a run trains on, or shows to a model, holds what it is judged by:
// valid and test items, by id, by item and by text. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/datasets/dataset.h"

namespace prefgrid {

enum class LeakKind {
  same_id,         // a held-out item itself
  same_item,       // another item with the same prompt and responses, after normalisation
  same_text,       // a training response equals a held-out response
  contained_text,  // a held-out response of 20 characters or more stands in a training text
  not_given        // an unseen user's train item outside its given set: nobody may use it
};
const char* to_string(LeakKind kind);

struct Leak {
  LeakKind kind = LeakKind::same_id;
  std::string item_id;  // the item that leaks
  std::string user;     // whose item it is
  Split split = Split::test;
  std::string material;  // "training corpus", "given set of u12ab"
  std::string where;     // id of the training item, or author, that holds it

  bool operator==(const Leak&) const = default;
};

// "test item X of user U (contained text) in training corpus, at A".
std::string to_string(const Leak& leak);

// What one consumer of the data set reads: items by index, and free texts (documents, the prompts
// with in-context examples that were really sent).
struct TrainingMaterial {
  std::string name;
  std::vector<std::uint32_t> pairs;        // indices into Dataset::pairs
  std::vector<std::uint32_t> completions;  // and into Dataset::completions
  std::vector<TrainingText> texts;         // prompt and completion may be empty
};

// Responses of held-out completions are sought in every text. Those of held-out pairs are sought in
// `texts` alone: in a data set of judgements (not of people's own texts) the same response is
// honestly part of train and test pairs, and the pair is what must not repeat.
std::vector<Leak> find_leaks(const Dataset& dataset, std::span<const TrainingMaterial> materials);

// Everything that the product derives from a data set for training: the corpus, seen users' train
// items, and each unseen user's given set.
std::vector<TrainingMaterial> derived_material(const Dataset& dataset);
std::vector<Leak> check_leaks(const Dataset& dataset);

}  // namespace prefgrid
