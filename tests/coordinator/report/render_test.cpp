#include "coordinator/report/render.h"

#include <doctest/doctest.h>

#include "coordinator/report/summary.h"
#include "tests/coordinator/report/tables.h"

namespace prefgrid {
namespace {

// lore at decoding weight 1, with what it guided and with the policy's grid of weights.
ResultTable guided_table() {
  TinyGrid grid;
  CellLabel rm = cell_of("lore", "ann");
  rm.config = "features_from=bow,rank=5";
  grid.add("rm", rm, {metric("rm_accuracy", 7, 8)});
  CellLabel policy = rm;
  policy.policy = "tiny";
  policy.decoding = "args";
  grid.add("policy", policy,
           {metric("policy_accuracy", 4, 8, 0.0), metric("policy_accuracy", 6, 8, 1.0),
            metric("flip_rate", 2, 8, 1.0)});
  CellLabel generated = policy;
  generated.weight = 1.0;
  grid.add("text", generated, {metric("rouge1", 200, 8), metric("style_match", 4, 8)});
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
  CHECK(line.figures[0]->value == doctest::Approx(87.5));
  CHECK(line.figures[1]->value == doctest::Approx(75));  // at w = 1, not at w = 0
  CHECK(line.figures[2]->value == doctest::Approx(25));
  CHECK(line.figures[3]->value == doctest::Approx(25));  // ROUGE is x100 already
  CHECK(line.figures[4]->value == doctest::Approx(50));
}

TEST_CASE("csv quotes what needs it and leaves absent values empty") {
  const std::string csv = to_csv(guided_table());
  CHECK(
      csv.starts_with("dataset,method,config,backbone,policy,decoding,weight,seed,user_group,"
                      "metric,value,ci_low,ci_high,n_users,n_valid,n_missing\n"));
  CHECK(csv.find("tiny-data,lore,\"features_from=bow,rank=5\",tiny,,,,,seen,rm_accuracy,0.875,"
                 "0.875,0.875,1,8,0\n") != std::string::npos);
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
