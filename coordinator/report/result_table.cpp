#include "coordinator/report/result_table.h"

#include <utility>

namespace prefgrid {
namespace {

template <class T>
void put_optional(ValueMap& map, const char* name, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<T, double>) {
    map.emplace(name, *value);
  } else {
    map.emplace(name, static_cast<std::int64_t>(*value));
  }
}

// Reads the fields of one map; the first missing or mistyped one is remembered as an error.
class FieldReader {
 public:
  FieldReader(const Value& value, const char* what) : what_(what) {
    map_ = std::get_if<ValueMap>(&value);
    if (!map_) problem_ = std::string(what) + " is not a map";
  }

  template <class T>
  T get(const char* name) {
    if (const T* found = find<T>(name)) return *found;
    if (problem_.empty()) problem_ = std::string(what_) + " lacks a valid field " + name;
    return T{};
  }
  std::uint64_t count(const char* name) {
    return static_cast<std::uint64_t>(get<std::int64_t>(name));
  }
  std::optional<double> optional_real(const char* name) {
    const double* found = find<double>(name);
    return found ? std::optional(*found) : std::nullopt;
  }
  std::optional<std::uint64_t> optional_count(const char* name) {
    const std::int64_t* found = find<std::int64_t>(name);
    return found ? std::optional(static_cast<std::uint64_t>(*found)) : std::nullopt;
  }
  const std::string& problem() const { return problem_; }

 private:
  template <class T>
  const T* find(const char* name) const {
    if (!map_) return nullptr;
    const auto found = map_->find(name);
    return found == map_->end() ? nullptr : std::get_if<T>(&found->second);
  }
  const char* what_;
  const ValueMap* map_ = nullptr;
  std::string problem_;
};

Value row_value(const ResultRow& row) {
  ValueMap map{{"dataset", row.dataset},
               {"method", row.method},
               {"config", row.config},
               {"backbone", row.backbone},
               {"policy", row.policy},
               {"decoding", row.decoding},
               {"user_group", row.user_group},
               {"metric", row.metric},
               {"n_users", static_cast<std::int64_t>(row.n_users)},
               {"n_valid", static_cast<std::int64_t>(row.n_valid)},
               {"n_missing", static_cast<std::int64_t>(row.n_missing)},
               {"users_missing", static_cast<std::int64_t>(row.users_missing)}};
  put_optional(map, "value", row.value);
  put_optional(map, "weight", row.weight);
  put_optional(map, "seed", row.seed);
  put_optional(map, "ci_low", row.ci_low);
  put_optional(map, "ci_high", row.ci_high);
  return map;
}

ResultRow read_row(FieldReader& in) {
  ResultRow row;
  row.dataset = in.get<std::string>("dataset");
  row.method = in.get<std::string>("method");
  row.config = in.get<std::string>("config");
  row.backbone = in.get<std::string>("backbone");
  row.policy = in.get<std::string>("policy");
  row.decoding = in.get<std::string>("decoding");
  row.weight = in.optional_real("weight");
  row.seed = in.optional_count("seed");
  row.user_group = in.get<std::string>("user_group");
  row.metric = in.get<std::string>("metric");
  row.value = in.optional_real("value");
  row.ci_low = in.optional_real("ci_low");
  row.ci_high = in.optional_real("ci_high");
  row.n_users = in.count("n_users");
  row.n_valid = in.count("n_valid");
  row.n_missing = in.count("n_missing");
  row.users_missing = in.optional_count("users_missing").value_or(0);
  return row;
}

Value missing_value(const MissingCell& cell) {
  return ValueMap{{"stage", cell.stage},   {"job", cell.job},           {"method", cell.method},
                  {"config", cell.config}, {"backbone", cell.backbone}, {"policy", cell.policy},
                  {"user", cell.user},     {"reason", cell.reason}};
}

MissingCell read_missing(FieldReader& in) {
  return {in.get<std::string>("stage"),    in.get<std::string>("job"),
          in.get<std::string>("method"),   in.get<std::string>("config"),
          in.get<std::string>("backbone"), in.get<std::string>("policy"),
          in.get<std::string>("user"),     in.get<std::string>("reason")};
}

Value profile_value(const NumericsProfile& profile) {
  return ValueMap{{"device", profile.device},
                  {"library", profile.library},
                  {"blas_kernel", profile.blas_kernel},
                  {"cpu_capability", profile.cpu_capability},
                  {"threads", static_cast<std::int64_t>(profile.threads)},
                  {"dtype", profile.dtype}};
}

NumericsProfile read_profile(FieldReader& in) {
  return {in.get<std::string>("device"),
          in.get<std::string>("library"),
          in.get<std::string>("blas_kernel"),
          in.get<std::string>("cpu_capability"),
          static_cast<std::uint32_t>(in.get<std::int64_t>("threads")),
          in.get<std::string>("dtype")};
}

template <class T, class Convert>
Value list_value(const std::vector<T>& items, Convert convert) {
  ValueList list;
  list.reserve(items.size());
  for (const T& item : items) list.push_back(convert(item));
  return list;
}

template <class Read>
auto read_list(FieldReader& in, const char* name, Read read)
    -> Result<std::vector<std::invoke_result_t<Read, FieldReader&>>> {
  std::vector<std::invoke_result_t<Read, FieldReader&>> items;
  for (const Value& value : in.get<ValueList>(name)) {
    FieldReader fields(value, name);
    items.push_back(read(fields));
    if (!fields.problem().empty()) return invalid_input("results reply: " + fields.problem());
  }
  return items;
}

}  // namespace

Value to_value(const ResultTable& table) {
  return ValueMap{{"experiment", table.experiment},
                  {"rows", list_value(table.rows, row_value)},
                  {"missing", list_value(table.missing, missing_value)},
                  {"profiles", list_value(table.profiles, profile_value)}};
}

Result<ResultTable> result_table_from_value(const Value& value) {
  FieldReader in(value, "table");
  ResultTable table;
  table.experiment = in.get<std::string>("experiment");
  PREFGRID_ASSIGN(table.rows, read_list(in, "rows", read_row));
  PREFGRID_ASSIGN(table.missing, read_list(in, "missing", read_missing));
  PREFGRID_ASSIGN(table.profiles, read_list(in, "profiles", read_profile));
  if (!in.problem().empty()) return invalid_input("results reply: " + in.problem());
  return table;
}

}  // namespace prefgrid
