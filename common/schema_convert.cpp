#include "common/schema_convert.h"

#include <kj/io.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "common/crc32c.h"
#include "common/text.h"

namespace prefgrid {
namespace {

static_assert(static_cast<int>(FailureClass::lost_worker) ==
              static_cast<int>(schema::FailureClass::LOST_WORKER));
static_assert(static_cast<int>(FailureClass::no_space) ==
              static_cast<int>(schema::FailureClass::NO_SPACE));

constexpr std::size_t crc_bytes = 4;
// A map in a list in a map … takes three levels of Cap'n Proto for one of ours.
constexpr int nesting_limit = 3 * static_cast<int>(limits::value_depth) + 32;

// Honest messages are traversed once or twice; one whose pointers all lead to the same place is
// not worth more than this.
std::uint64_t traversal_limit(std::size_t words) {
  return 4 * std::uint64_t{words} + 4096;
}

std::uint32_t read_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

void write_value(schema::Value::Builder builder, const Value& value, std::size_t depth);

void write_map(capnp::List<schema::Field>::Builder builder, const ValueMap& map,
               std::size_t depth) {
  unsigned index = 0;
  for (const auto& [key, value] : map) {
    schema::Field::Builder field = builder[index++];
    field.setName(as_text(key));
    write_value(field.initValue(), value, depth + 1);
  }
}

void write_value(schema::Value::Builder builder, const Value& value, std::size_t depth) {
  PREFGRID_CHECK(depth <= limits::value_depth, "a value is nested too deeply to be sent");
  if (const auto* boolean = std::get_if<bool>(&value)) {
    builder.setBoolean(*boolean);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    builder.setInteger(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    builder.setReal(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    builder.setText(as_text(*text));
  } else if (const auto* list = std::get_if<ValueList>(&value)) {
    auto items = builder.initList(list_size(*list));
    for (unsigned i = 0; i < items.size(); ++i) write_value(items[i], (*list)[i], depth + 1);
  } else {
    const ValueMap& map = value.map();
    write_map(builder.initMap(list_size(map)), map, depth);
  }
}

Result<Value> read_value(schema::Value::Reader reader, std::size_t depth);

Result<ValueMap> read_map(capnp::List<schema::Field>::Reader fields, std::size_t depth) {
  if (fields.size() > limits::list_items) return damaged("map", "too many fields");
  ValueMap map;
  for (const auto& field : fields) {
    PREFGRID_ASSIGN(std::string key, read_text(field.getName(), "map key"));
    if (!map.empty() && key <= map.rbegin()->first) {
      return damaged("map", "key " + quoted(key) + " is out of order or there twice");
    }
    PREFGRID_ASSIGN(Value value, read_value(field.getValue(), depth + 1));
    map.emplace_hint(map.end(), std::move(key), std::move(value));
  }
  return map;
}

Result<Value> read_value(schema::Value::Reader reader, std::size_t depth) {
  if (depth > limits::value_depth) return damaged("value", "nested too deeply");
  switch (reader.which()) {
    case schema::Value::BOOLEAN:
      return Value(reader.getBoolean());
    case schema::Value::INTEGER:
      return Value(reader.getInteger());
    case schema::Value::REAL:
      return Value(reader.getReal());
    case schema::Value::TEXT: {
      PREFGRID_ASSIGN(std::string text, read_text(reader.getText(), "text value"));
      return Value(std::move(text));
    }
    case schema::Value::LIST: {
      PREFGRID_ASSIGN(ValueList list,
                      read_list(reader.getList(), "list value", [&](schema::Value::Reader item) {
                        return read_value(item, depth + 1);
                      }));
      return Value(std::move(list));
    }
    case schema::Value::MAP: {
      PREFGRID_ASSIGN(ValueMap map, read_map(reader.getMap(), depth));
      return Value(std::move(map));
    }
  }
  return damaged("value", "of a type that this version does not know");
}

void write_input(schema::InputRef::Builder builder, const std::string& name,
                 const InputRef& input) {
  builder.setName(as_text(name));
  if (const auto* job = std::get_if<JobKey>(&input)) {
    builder.setJob(id_data(*job));
  } else {
    builder.setFile(id_data(std::get<ArtifactDigest>(input)));
  }
}

Result<InputRef> read_input(schema::InputRef::Reader reader) {
  switch (reader.which()) {
    case schema::InputRef::JOB: {
      PREFGRID_ASSIGN(const JobKey key, read_id<JobKey>(reader.getJob(), "input job"));
      return InputRef(key);
    }
    case schema::InputRef::FILE: {
      PREFGRID_ASSIGN(const ArtifactDigest digest,
                      read_id<ArtifactDigest>(reader.getFile(), "input file"));
      return InputRef(digest);
    }
  }
  return damaged("input", "of a type that this version does not know");
}

void write_metric(schema::Metric::Builder builder, const Metric& metric) {
  builder.setName(as_text(metric.name));
  builder.setHasWeight(metric.weight.has_value());
  builder.setWeight(metric.weight.value_or(0));
  builder.setSum(metric.sum);
  builder.setCount(metric.count);
  builder.setMissing(metric.missing);
}

Result<Metric> read_metric(schema::Metric::Reader reader) {
  Metric metric;
  PREFGRID_ASSIGN(metric.name, read_text(reader.getName(), "metric name", limits::name_bytes));
  if (reader.getHasWeight()) metric.weight = reader.getWeight();
  metric.sum = reader.getSum();
  metric.count = reader.getCount();
  metric.missing = reader.getMissing();
  return metric;
}

void write_point(schema::CurvePoint::Builder builder, const CurvePoint& point) {
  builder.setStep(point.step);
  builder.setSeries(as_text(point.series));
  builder.setValue(point.value);
}

Result<CurvePoint> read_point(schema::CurvePoint::Reader reader) {
  CurvePoint point;
  point.step = reader.getStep();
  PREFGRID_ASSIGN(point.series, read_text(reader.getSeries(), "curve series", limits::name_bytes));
  point.value = reader.getValue();
  return point;
}

Result<void> check_artifacts(const std::vector<ArtifactRef>& artifacts) {
  std::set<std::string_view> names;
  std::size_t inline_bytes = 0;
  for (const ArtifactRef& artifact : artifacts) {
    if (artifact.name.empty()) return damaged("artefact", "without a name");
    if (!names.insert(artifact.name).second) {
      return damaged("artefact", quoted(artifact.name) + " is there twice");
    }
    if (artifact.inline_data) inline_bytes += artifact.inline_data->size();
  }
  if (inline_bytes > limits::result_inline_bytes) {
    return damaged("artefacts", std::to_string(inline_bytes) + " bytes inline, over the limit");
  }
  return {};
}

}  // namespace

Error damaged(std::string_view what, std::string_view detail) {
  return invalid_input(std::string(what) + " cannot be read: " + std::string(detail));
}

std::string seal(capnp::MessageBuilder& message, std::string_view prefix) {
  const std::size_t body = capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word);
  std::string sealed(prefix.size() + body + crc_bytes, '\0');
  std::copy(prefix.begin(), prefix.end(), sealed.begin());
  kj::ArrayOutputStream stream(
      kj::arrayPtr(reinterpret_cast<kj::byte*>(sealed.data()) + prefix.size(), body));
  capnp::writeMessage(stream, message);
  const std::uint32_t crc = crc32c(std::string_view(sealed).substr(0, prefix.size() + body));
  for (std::size_t i = 0; i < crc_bytes; ++i) {
    sealed[prefix.size() + body + i] = static_cast<char>(crc >> (8 * i) & 0xFF);
  }
  return sealed;
}

Result<Opened> Opened::open(std::string_view sealed, std::size_t prefix_bytes,
                            std::string_view what) {
  if (sealed.size() < prefix_bytes + sizeof(capnp::word) + crc_bytes) {
    return damaged(what, std::to_string(sealed.size()) + " bytes are too few");
  }
  const std::string_view covered = sealed.substr(0, sealed.size() - crc_bytes);
  if (crc32c(covered) != read_u32(sealed.substr(covered.size()))) {
    return damaged(what, "the checksum does not match");
  }
  const std::string_view body = covered.substr(prefix_bytes);
  if (body.size() % sizeof(capnp::word) != 0) return damaged(what, "it is not whole words");
  Opened opened;
  opened.words_ = kj::heapArray<capnp::word>(body.size() / sizeof(capnp::word));
  std::memcpy(opened.words_.begin(), body.data(), body.size());
  capnp::ReaderOptions options;
  options.traversalLimitInWords = traversal_limit(opened.words_.size());
  options.nestingLimit = nesting_limit;
  opened.reader_ = std::make_unique<capnp::FlatArrayMessageReader>(opened.words_.asPtr(), options);
  if (opened.reader_->getEnd() != opened.words_.end()) {
    return damaged(what, "there is something behind its end");
  }
  return opened;
}

Result<std::string> read_text(capnp::Text::Reader text, std::string_view what,
                              std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return damaged(what, std::to_string(text.size()) + " bytes are over the limit of " +
                             std::to_string(max_bytes));
  }
  std::string copy(text.begin(), text.size());
  if (!valid_utf8(copy)) return damaged(what, quoted(copy) + " is not UTF-8");
  return copy;
}

Result<std::string> read_bytes(capnp::Data::Reader data, std::string_view what,
                               std::size_t max_bytes) {
  if (data.size() > max_bytes) {
    return damaged(what, std::to_string(data.size()) + " bytes are over the limit of " +
                             std::to_string(max_bytes));
  }
  return std::string(reinterpret_cast<const char*>(data.begin()), data.size());
}

kj::StringPtr as_text(const std::string& text) {
  return {text.c_str(), text.size()};
}

capnp::Data::Reader as_data(std::string_view bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

void write(schema::Value::Builder builder, const Value& value) {
  write_value(builder, value, 0);
}
Result<Value> read(schema::Value::Reader reader) {
  return read_value(reader, 0);
}

void write(capnp::List<schema::Field>::Builder builder, const ValueMap& map) {
  write_map(builder, map, 0);
}
Result<ValueMap> read(capnp::List<schema::Field>::Reader reader) {
  return read_map(reader, 0);
}

void write(schema::JobSpec::Builder builder, const JobSpec& spec) {
  builder.setKind(as_text(spec.kind));
  builder.setKindVersion(spec.kind_version);
  write(builder.initParameters(list_size(spec.parameters)), spec.parameters);
  auto inputs = builder.initInputs(list_size(spec.inputs));
  unsigned index = 0;
  for (const auto& [name, input] : spec.inputs) write_input(inputs[index++], name, input);
  builder.setHasSeed(spec.seed.has_value());
  builder.setSeed(spec.seed.value_or(0));
}

Result<JobSpec> read(schema::JobSpec::Reader reader) {
  JobSpec spec;
  PREFGRID_ASSIGN(spec.kind, read_text(reader.getKind(), "job kind", limits::name_bytes));
  spec.kind_version = reader.getKindVersion();
  PREFGRID_ASSIGN(spec.parameters, read(reader.getParameters()));
  const auto inputs = reader.getInputs();
  if (inputs.size() > limits::list_items) return damaged("inputs", "too many");
  for (const auto& input : inputs) {
    PREFGRID_ASSIGN(std::string name, read_text(input.getName(), "input name", limits::name_bytes));
    if (!spec.inputs.empty() && name <= spec.inputs.rbegin()->first) {
      return damaged("inputs", "name " + quoted(name) + " is out of order or there twice");
    }
    PREFGRID_ASSIGN(InputRef id, read_input(input));
    spec.inputs.emplace_hint(spec.inputs.end(), std::move(name), id);
  }
  if (reader.getHasSeed()) spec.seed = reader.getSeed();
  return spec;
}

void write(schema::ArtifactRef::Builder builder, const ArtifactRef& artifact) {
  builder.setName(as_text(artifact.name));
  builder.setDigest(id_data(artifact.digest));
  builder.setSize(artifact.size);
  builder.setHasInlineData(artifact.inline_data.has_value());
  if (artifact.inline_data) builder.setInlineData(as_data(*artifact.inline_data));
}

Result<ArtifactRef> read(schema::ArtifactRef::Reader reader) {
  ArtifactRef artifact;
  PREFGRID_ASSIGN(artifact.name, read_text(reader.getName(), "artefact name", limits::name_bytes));
  // An outside file among a job's inputs has no name; JobResult refuses that.
  if (!artifact.name.empty() && !safe_relative_path(artifact.name)) {
    return damaged("artefact name", quoted(artifact.name) + " leads out of its folder");
  }
  PREFGRID_ASSIGN(artifact.digest, read_id<ArtifactDigest>(reader.getDigest(), "artefact digest"));
  artifact.size = reader.getSize();
  if (reader.getHasInlineData()) {
    PREFGRID_ASSIGN(artifact.inline_data, read_bytes(reader.getInlineData(), "artefact content",
                                                     limits::inline_artifact_bytes));
    if (artifact.inline_data->size() != artifact.size) {
      return damaged("artefact " + quoted(artifact.name), "its content and its size disagree");
    }
  }
  return artifact;
}

void write(schema::NumericsProfile::Builder builder, const NumericsProfile& profile) {
  builder.setDevice(as_text(profile.device));
  builder.setLibrary(as_text(profile.library));
  builder.setBlasKernel(as_text(profile.blas_kernel));
  builder.setCpuCapability(as_text(profile.cpu_capability));
  builder.setThreads(profile.threads);
  builder.setDtype(as_text(profile.dtype));
}

Result<NumericsProfile> read(schema::NumericsProfile::Reader reader) {
  NumericsProfile profile;
  constexpr std::size_t most = limits::name_bytes;
  PREFGRID_ASSIGN(profile.device, read_text(reader.getDevice(), "device", most));
  PREFGRID_ASSIGN(profile.library, read_text(reader.getLibrary(), "library", most));
  PREFGRID_ASSIGN(profile.blas_kernel, read_text(reader.getBlasKernel(), "BLAS kernel", most));
  PREFGRID_ASSIGN(profile.cpu_capability,
                  read_text(reader.getCpuCapability(), "CPU capability", most));
  profile.threads = reader.getThreads();
  PREFGRID_ASSIGN(profile.dtype, read_text(reader.getDtype(), "dtype", most));
  return profile;
}

void write(schema::JobResult::Builder builder, const JobResult& result) {
  write_list(builder.initMetrics(list_size(result.metrics)), result.metrics, write_metric);
  write_list(builder.initCurve(list_size(result.curve)), result.curve, write_point);
  write_list(builder.initArtifacts(list_size(result.artifacts)), result.artifacts,
             [](auto item, const ArtifactRef& artifact) { write(item, artifact); });
  write(builder.initProfile(), result.profile);
  builder.setDurationMs(result.duration_ms);
}

Result<JobResult> read(schema::JobResult::Reader reader) {
  JobResult result;
  PREFGRID_ASSIGN(result.metrics, read_list(reader.getMetrics(), "metrics", read_metric));
  PREFGRID_ASSIGN(result.curve, read_list(reader.getCurve(), "curve", read_point));
  PREFGRID_ASSIGN(result.artifacts,
                  read_list(reader.getArtifacts(), "artefacts",
                            [](schema::ArtifactRef::Reader item) { return read(item); }));
  PREFGRID_TRY(check_artifacts(result.artifacts));
  PREFGRID_ASSIGN(result.profile, read(reader.getProfile()));
  result.duration_ms = reader.getDurationMs();
  return result;
}

void write(schema::JobFailure::Builder builder, const JobFailure& failure) {
  builder.setFailureClass(static_cast<schema::FailureClass>(failure.failure_class));
  builder.setMessage(as_text(cut_text(failure.message, limits::error_text_bytes)));
  builder.setSignal(failure.signal);
  const std::size_t tail = std::min(failure.log_tail.size(), limits::log_tail_bytes);
  builder.setLogTail(
      as_data(std::string_view(failure.log_tail).substr(failure.log_tail.size() - tail)));
}

Result<JobFailure> read(schema::JobFailure::Reader reader) {
  JobFailure failure;
  const auto number = static_cast<std::uint16_t>(reader.getFailureClass());
  if (number > static_cast<std::uint16_t>(FailureClass::no_space)) {
    return damaged("failure class", std::to_string(number) + " is none that this version knows");
  }
  failure.failure_class = static_cast<FailureClass>(number);
  PREFGRID_ASSIGN(failure.message,
                  read_text(reader.getMessage(), "failure text", limits::error_text_bytes));
  failure.signal = reader.getSignal();
  PREFGRID_ASSIGN(failure.log_tail,
                  read_bytes(reader.getLogTail(), "log tail", limits::log_tail_bytes));
  return failure;
}

}  // namespace prefgrid
