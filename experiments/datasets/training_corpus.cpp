// The documents that a policy may be pretrained on.
#include <algorithm>
#include <unordered_set>

#include "experiments/datasets/dataset.h"
#include "experiments/datasets/held_out.h"
#include "experiments/datasets/item_keys.h"

namespace prefgrid {
namespace {

class Collector {
 public:
  explicit Collector(const Dataset& dataset) : held_out_(dataset) {}

  // Texts that are equal after normalisation, prompt and response, are one document.
  void add(const std::string& author, const std::string& prompt, const std::string& response) {
    CompletionItem document;
    document.prompt = prompt;
    document.completion = response;
    if (!known_.insert(item_key(document)).second) return;
    if (held_out_.clean(prompt, response)) texts_.push_back({author, prompt, response});
  }

  std::vector<TrainingText> take() && { return std::move(texts_); }

 private:
  HeldOutTexts held_out_;
  std::unordered_set<std::uint64_t> known_;
  std::vector<TrainingText> texts_;
};

}  // namespace

std::vector<TrainingText> training_corpus(const Dataset& dataset) {
  Collector collector(dataset);
  for (std::uint32_t user = 0; user < dataset.users.size(); ++user) {
    if (!dataset.users[user].seen) continue;
    const std::string& author = dataset.users[user].id;
    for (const auto i : dataset.completions_of(user, Split::train)) {
      const CompletionItem& item = dataset.completions[i];
      collector.add(author, item.prompt, item.completion);
    }
    for (const auto i : dataset.pairs_of(user, Split::train)) {
      const PairItem& item = dataset.pairs[i];
      collector.add(author, item.prompt, item.chosen);
    }
  }
  for (const CorpusItem& item : dataset.corpus) {
    collector.add(item.author, item.prompt, item.completion);
  }
  return std::move(collector).take();
}

}  // namespace prefgrid
