#include "coordinator/report/render.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "coordinator/report/summary.h"
#include "tests/coordinator/report/tables.h"

namespace prefgrid {
namespace {

// lore at decoding weight 1, with what it guided and with the policy's grid of weights.
ResultTable guided_table() {
  TinyGrid grid;
  CellLabel rm = cell_of("lore", "ann");
  rm.config = "features_from=bow,rank=5";
  grid.add("rm", rm, {metric("rm_accuracy", 7, 8)}, "rm_accuracy");
  CellLabel policy = rm;
  policy.policy = "tiny";
  policy.decoding = "args";
  grid.add("policy", policy,
           {metric("policy_accuracy", 4, 8, 0.0), metric("policy_accuracy", 6, 8, 1.0),
            metric("flip_rate", 2, 8, 1.0)},
           "policy_accuracy");
  CellLabel generated = policy;
  generated.weight = 1.0;
  grid.add("text", generated, {metric("rouge1", 200, 8), metric("style_match", 4, 8)}, "generate");
  return grid.table();
}

}  // namespace

TEST_CASE("the summary joins reward accuracy, policy accuracy at the decoder's weight and text") {
  const std::vector<SummaryBlock> blocks = summarise(guided_table());
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].title == "seen users (1)");
  REQUIRE(blocks[0].lines.size() == 1);
  REQUIRE(blocks[0].metrics == std::vector<std::string>{"rm_accuracy", "policy_accuracy",
                                                        "flip_rate", "rouge1", "style_match"});
  const SummaryLine& line = blocks[0].lines[0];
  CHECK(line.weight == 1.0);
  CHECK(line.figures[0]->value.value() == doctest::Approx(87.5));
  CHECK(line.figures[1]->value.value() == doctest::Approx(75));  // at w = 1, not at w = 0
  CHECK(line.figures[2]->value.value() == doctest::Approx(25));
  CHECK(line.figures[3]->value.value() == doctest::Approx(25));  // ROUGE is x100 already
  CHECK(line.figures[4]->value.value() == doctest::Approx(50));
}

TEST_CASE("csv quotes what needs it and leaves absent values empty") {
  const std::string csv = to_csv(guided_table());
  CHECK(
      csv.starts_with("dataset,method,config,backbone,policy,decoding,weight,seed,user_group,"
                      "metric,value,ci_low,ci_high,n_users,n_valid,n_missing\n"));
  CHECK(csv.find("tiny-data,lore,\"features_from=bow,rank=5\",tiny,,,,,seen,rm_accuracy,87.5,,,"
                 "1,8,0\n") != std::string::npos);
}

TEST_CASE("csv, json, html and the terminal show the same number") {
  // Three users, 1 of 3, 2 of 3 and 2 of 3 right: 55.5556 %.
  TinyGrid grid;
  int right = 1;
  for (const char* user : {"ann", "bob", "cid"}) {
    grid.add(user, cell_of("lore", user),
             {metric("rm_accuracy", right, 3), metric("rouge1", 12.5, 1)});
    right = 2;
  }
  const ResultTable table = grid.table();
  CHECK(to_csv(table).find(",rm_accuracy,55.5556,") != std::string::npos);
  CHECK(to_csv(table).find(",rouge1,12.5,") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(table));
  for (const auto& row : json["rows"]) {
    if (row["metric"] == "rm_accuracy") CHECK(row["value"] == 55.5556);
  }
  CHECK(json["units"]["rm_accuracy"] == "percent");
  CHECK(json["units"]["rouge1"] == "x100");
  CHECK(to_html(table, {"0", ""}).find("<td class=\"figure\">55.5556</td>") != std::string::npos);
  CHECK(to_text(table).find("55.6 [") != std::string::npos);
  CHECK(to_text(table).find("rm_accuracy (%)") != std::string::npos);
}

TEST_CASE("a figure says how many users are behind it when some are missing") {
  TinyGrid grid;
  grid.add("ann", cell_of("lore", "ann"), {metric("rm_accuracy", 3, 4)});
  grid.add("bob", cell_of("lore", "bob"), {metric("rm_accuracy", 3, 4)});
  grid.add_missing("cid", cell_of("lore", "cid"));
  grid.add_missing("ann, global", cell_of("global_bt", "ann"));
  const std::string text = to_text(grid.table());
  INFO(text);
  CHECK(text.find("seen users (3)") != std::string::npos);
  CHECK(text.find("75.0 [75.0, 75.0] (2 of 3)") != std::string::npos);
  CHECK(text.find("- (0 of 1)") != std::string::npos);
}

TEST_CASE("whole numbers are printed as such") {
  TinyGrid grid;
  grid.add("train", cell_of("lore", "", ""),
           {metric("chosen_step", 30, 1), metric("train_loss_nats", 0.5, 1)}, "train");
  const std::string text = to_text(grid.table());
  CHECK(text.find("30.0") == std::string::npos);
  CHECK(text.find(" 30 ") != std::string::npos);
  CHECK(text.find("0.500") != std::string::npos);
}

TEST_CASE("hostile names cannot break out of csv or html") {
  TinyGrid grid;
  grid.add("x", cell_of("a\"b,<script>", "ann"), {metric("rm_accuracy", 1, 1)});
  const ResultTable table = grid.table();
  CHECK(to_csv(table).find("\"a\"\"b,<script>\"") != std::string::npos);
  const std::string html = to_html(table, {"0", "experiment: <b>"});
  CHECK(html.find("<script>") == std::string::npos);
  CHECK(html.find("&lt;script&gt;") != std::string::npos);
  CHECK(html.find("experiment: &lt;b&gt;") != std::string::npos);
}

TEST_CASE("a table survives the way through a reply") {
  ResultTable table = guided_table();
  table.missing.push_back({"adapt", "0123", "lore", "rank=5", "tiny", "tiny", "bob", "crashed"});
  const Result<ResultTable> back = result_table_from_value(to_value(table));
  REQUIRE(back.ok());
  CHECK(to_csv(*back) == to_csv(table));
  CHECK(to_json(*back) == to_json(table));
  CHECK(to_text(*back) == to_text(table));
}

TEST_CASE("a damaged reply is an error that names the field") {
  Value value = to_value(guided_table());
  std::get<ValueMap>(std::get<ValueList>(std::get<ValueMap>(value)["rows"])[0]).erase("metric");
  const Result<ResultTable> back = result_table_from_value(value);
  REQUIRE(!back.ok());
  CHECK(back.error().message.find("metric") != std::string::npos);
}

}  // namespace prefgrid
