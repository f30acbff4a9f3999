#include "experiments/datasets/leak_detector.h"

#include <algorithm>
#include <unordered_map>

#include "experiments/datasets/held_out.h"
#include "experiments/datasets/item_keys.h"

namespace prefgrid {
namespace {

class Detector {
 public:
  explicit Detector(const Dataset& dataset)
      : dataset_(dataset),
        held_out_(dataset),
        held_out_pairs_(keys_of(dataset.pairs)),
        held_out_completions_(keys_of(dataset.completions)) {}

  std::vector<Leak> find(const TrainingMaterial& material) {
    leaks_.clear();
    material_ = &material;
    for (const auto i : material.pairs) {
      const PairItem& item = dataset_.pairs[i];
      const bool given = std::ranges::binary_search(dataset_.users[item.user].given_pairs, i);
      check_item(item, given, dataset_.pairs, held_out_pairs_);
      // Both sides: a rejected one may be the other's own text.
      check_text(item.id, item.prompt + '\n' + item.chosen, item.chosen, false);
      check_text(item.id, item.rejected, item.rejected, false);
    }
    for (const auto i : material.completions) {
      const CompletionItem& item = dataset_.completions[i];
      const bool given = std::ranges::binary_search(dataset_.users[item.user].given_completions, i);
      check_item(item, given, dataset_.completions, held_out_completions_);
      check_text(item.id, item.prompt + '\n' + item.completion, item.completion, false);
    }
    for (const TrainingText& text : material.texts) {
      check_text(text.author, text.prompt + '\n' + text.completion, text.completion, true);
    }
    return std::move(leaks_);
  }

 private:
  using Keys = std::unordered_map<std::uint64_t, std::uint32_t>;

  template <class Item>
  static Keys keys_of(const std::vector<Item>& items) {
    Keys keys;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
      if (items[i].split != Split::train) keys.emplace(item_key(items[i]), i);
    }
    return keys;
  }

  template <class Item>
  void report(LeakKind kind, const Item& item, const std::string& where) {
    leaks_.push_back(
        {kind, item.id, dataset_.users[item.user].id, item.split, material_->name, where});
  }

  template <class Item>
  void check_item(const Item& item, bool given, const std::vector<Item>& items,
                  const Keys& held_out) {
    if (item.split != Split::train) {
      report(LeakKind::same_id, item, item.id);
      return;
    }
    if (!given) report(LeakKind::not_given, item, item.id);
    const auto twin = held_out.find(item_key(item));
    if (twin != held_out.end()) report(LeakKind::same_item, items[twin->second], item.id);
  }

  void check_text(const std::string& where, const std::string& document,
                  const std::string& response, bool pairs_too) {
    const auto add = [&](LeakKind kind, std::uint32_t number) {
      const HeldOutText& text = held_out_.texts()[number];
      if (text.of_pair && !pairs_too) return;
      if (text.item_id == where) return;  // the item itself: reported by its id
      leaks_.push_back({kind, text.item_id, text.user, text.split, material_->name, where});
    };
    const auto equal = held_out_.finder().equal_to(response);
    for (const auto number : equal) add(LeakKind::same_text, number);
    for (const auto number : held_out_.finder().contained_in(document)) {
      if (!std::ranges::binary_search(equal, number)) add(LeakKind::contained_text, number);
    }
  }

  const Dataset& dataset_;
  const HeldOutTexts held_out_;
  const Keys held_out_pairs_;
  const Keys held_out_completions_;
  const TrainingMaterial* material_ = nullptr;
  std::vector<Leak> leaks_;
};

}  // namespace

const char* to_string(LeakKind kind) {
  switch (kind) {
    case LeakKind::same_id:
      return "same id";
    case LeakKind::same_item:
      return "same item";
    case LeakKind::same_text:
      return "same text";
    case LeakKind::contained_text:
      return "contained text";
    case LeakKind::not_given:
      return "not in the given set";
  }
  return "?";
}

std::string to_string(const Leak& leak) {
  return std::string(to_string(leak.split)) + " item " + leak.item_id + " of user " + leak.user +
         " (" + to_string(leak.kind) + ") in " + leak.material + ", at " + leak.where;
}

std::vector<Leak> find_leaks(const Dataset& dataset, std::span<const TrainingMaterial> materials) {
  Detector detector(dataset);
  std::vector<Leak> leaks;
  for (const TrainingMaterial& material : materials) {
    for (Leak& leak : detector.find(material)) leaks.push_back(std::move(leak));
  }
  return leaks;
}

std::vector<TrainingMaterial> derived_material(const Dataset& dataset) {
  std::vector<TrainingMaterial> materials(2);
  materials[0].name = "training corpus";
  materials[0].texts = training_corpus(dataset);
  materials[1].name = "train items of seen users";
  for (std::uint32_t i = 0; i < dataset.users.size(); ++i) {
    const User& user = dataset.users[i];
    if (user.seen) {
      std::ranges::copy(dataset.pairs_of(i, Split::train), std::back_inserter(materials[1].pairs));
      std::ranges::copy(dataset.completions_of(i, Split::train),
                        std::back_inserter(materials[1].completions));
    }
    TrainingMaterial given;
    given.name = "given set of " + user.id;
    given.pairs = user.given_pairs;
    given.completions = user.given_completions;
    materials.push_back(std::move(given));
  }
  return materials;
}

std::vector<Leak> check_leaks(const Dataset& dataset) {
  return find_leaks(dataset, derived_material(dataset));
}

}  // namespace prefgrid
