#include "coordinator/report/aggregate.h"

#include <doctest/doctest.h>

#include "tests/coordinator/report/tables.h"

namespace prefgrid {

TEST_CASE("a user with many items weighs as much as a user with few") {
  // Ann: 9 of 10 right. Bob: 0 of 2. Macro: (0.9 + 0) / 2; pooled: 9 / 12.
  TinyGrid grid;
  grid.add("ann", cell_of("lore", "ann"), {metric("rm_accuracy", 9, 10)});
  grid.add("bob", cell_of("lore", "bob"), {metric("rm_accuracy", 0, 2)});
  const ResultTable table = grid.table();
  const ResultRow* macro = find_row(table, "rm_accuracy", "lore");
  const ResultRow* pooled = find_row(table, "rm_accuracy_pooled", "lore");
  REQUIRE(macro);
  REQUIRE(pooled);
  CHECK(*macro->value == doctest::Approx(45));
  CHECK(*pooled->value == doctest::Approx(75));
  CHECK(macro->n_users == 2);
  CHECK(macro->n_valid == 12);
  CHECK(*macro->ci_low == doctest::Approx(0.0));  // of two users, some resamples hold one alone
  CHECK(*macro->ci_high == doctest::Approx(90));
}

TEST_CASE("seen and unseen users are separate rows, never pooled") {
  TinyGrid grid;
  grid.add("ann", cell_of("lore", "ann", "seen"), {metric("rm_accuracy", 1, 1)});
  grid.add("bob", cell_of("lore", "bob", "unseen"), {metric("rm_accuracy", 0, 1)});
  const ResultTable table = grid.table();
  CHECK(find_row(table, "rm_accuracy", "lore", "seen")->value == 100);
  CHECK(find_row(table, "rm_accuracy", "lore", "unseen")->value == 0);
}

TEST_CASE("a user without a result is missing in every figure of its cell, with the reason") {
  TinyGrid grid;
  grid.add("ann", cell_of("lore", "ann"),
           {metric("policy_accuracy", 3, 4, 0.5), metric("policy_accuracy", 4, 4, 1.0, 1)},
           "policy_accuracy");
  grid.add_missing("bob", cell_of("lore", "bob"), "policy_accuracy");
  const ResultTable table = grid.table();
  REQUIRE(table.missing.size() == 1);
  CHECK(table.missing[0].user == "bob");
  CHECK(table.missing[0].reason == "not run yet");
  const ResultRow* half = find_weight(table, "policy_accuracy", 0.5);
  const ResultRow* one = find_weight(table, "policy_accuracy", 1.0);
  REQUIRE(half);
  REQUIRE(one);
  CHECK(half->n_missing == 1);
  CHECK(half->users_missing == 1);
  CHECK(one->n_missing == 2);  // one item of ann's, and bob
  CHECK(one->users_missing == 1);
}

TEST_CASE("a cell whose users all failed keeps its rows, without a value") {
  TinyGrid grid;
  grid.add("ann", cell_of("global_bt", "ann"), {metric("rm_accuracy", 3, 4)});
  grid.add_missing("bob", cell_of("lore", "bob"));
  grid.add_missing("cid", cell_of("lore", "cid"));
  const ResultTable table = grid.table();
  for (const char* name : {"rm_accuracy", "rm_accuracy_pooled", "rm_tie_rate"}) {
    CAPTURE(name);
    const ResultRow* row = find_row(table, name, "lore");
    REQUIRE(row);
    CHECK(!row->value);
    CHECK(!row->ci_low);
    CHECK(row->n_users == 0);
    CHECK(row->n_missing == 2);
  }
  CHECK(find_row(table, "rm_accuracy", "global_bt")->n_missing == 0);
}

TEST_CASE("a policy cell without any result has a row for each weight of the spec") {
  TinyGrid grid;
  PlannedJob job;
  job.stage = "policy_accuracy";
  job.spec.parameters["weights"] = ValueList{Value(0.0), Value(2.0)};
  job.cells = {cell_of("lore", "ann")};
  grid.plan.jobs.push_back(std::move(job));
  const ResultTable table = grid.table();
  CHECK(find_weight(table, "flip_rate", 0.0));
  CHECK(find_weight(table, "flip_rate", 2.0));
  CHECK(!find_weight(table, "flip_rate", 1.0));
}

TEST_CASE("an adaptation that failed is not counted again in its user's evaluation") {
  TinyGrid grid;
  grid.add("ann", cell_of("lore", "ann"), {metric("rm_accuracy", 3, 4)});
  grid.add_missing("bob adapt", cell_of("lore", "bob"), "adapt");
  grid.add_missing("bob", cell_of("lore", "bob"));
  const ResultTable table = grid.table();
  CHECK(find_row(table, "rm_accuracy", "lore")->n_missing == 1);
  CHECK(find_row(table, "adapt_loss_nats", "lore")->n_missing == 1);
}

TEST_CASE("one user alone has a mean and no interval") {
  TinyGrid grid;
  grid.add("ann", cell_of("lore", "ann"), {metric("rm_accuracy", 3, 4)});
  const ResultTable table = grid.table();
  for (const char* name : {"rm_accuracy", "rm_accuracy_pooled"}) {
    CHECK(*find_row(table, name, "lore")->value == doctest::Approx(75));
    CHECK(!find_row(table, name, "lore")->ci_low);
    CHECK(!find_row(table, name, "lore")->ci_high);
  }
}

TEST_CASE("the loss of a user's fit and that of the training have two names") {
  TinyGrid grid;
  CellLabel shared = cell_of("lore", "", "");
  grid.add("train", shared, {metric("train_loss_nats", 0.5, 1)}, "train");
  grid.add("ann", cell_of("lore", "ann"), {metric("train_loss_nats", 0.25, 1)}, "adapt");
  const ResultTable table = grid.table();
  CHECK(find_row(table, "train_loss_nats", "lore", "")->value == 0.5);
  CHECK(find_row(table, "adapt_loss_nats", "lore", "seen")->value == 0.25);
  CHECK(!find_row(table, "train_loss_nats", "lore", "seen"));
}

TEST_CASE("a user whose items all failed has no mean but is counted") {
  TinyGrid grid;
  grid.add("ann", cell_of("lore", "ann"), {metric("rouge1", 10, 1)});
  grid.add("bob", cell_of("lore", "bob"), {metric("rouge1", 0, 0, {}, 3)});
  const ResultTable table = grid.table();
  const ResultRow* row = find_row(table, "rouge1", "lore");
  CHECK(row->value == 10);
  CHECK(row->n_users == 1);
  CHECK(row->n_missing == 3);
}

TEST_CASE("the order of the plan's jobs leaves no trace in the table") {
  TinyGrid grid;
  for (int i = 0; i < 20; ++i) {
    const std::string user = "user" + std::to_string(i);
    grid.add(user, cell_of("lore", user), {metric("rm_accuracy", i % 7, 7)});
  }
  TinyGrid reversed = grid;
  reversed.plan.jobs = {};
  for (std::size_t i = grid.plan.jobs.size(); i-- > 0;) {
    reversed.plan.jobs.push_back(grid.plan.jobs[i]);
  }
  const ResultTable a = grid.table(), b = reversed.table();
  REQUIRE(a.rows.size() == b.rows.size());
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    CHECK(a.rows[i].value == b.rows[i].value);
    CHECK(a.rows[i].ci_low == b.rows[i].ci_low);
    CHECK(a.rows[i].ci_high == b.rows[i].ci_high);
  }
}

}  // namespace prefgrid
