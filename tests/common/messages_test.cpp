#include "common/messages.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "common/crc32c.h"
#include "common/limits.h"
#include "common/sha256.h"
#include "tests/common/sample_messages.h"

namespace prefgrid {
namespace {

// Through the wire and back.
template <class Part>
Part sent(const Part& part) {
  const Result<Message> message = decode_message(encode(Message(part)));
  if (!message) FAIL(message.error().message);
  REQUIRE(std::holds_alternative<Part>(*message));
  return std::get<Part>(*message);
}
template <class Part>
Part sent_bulk(const Part& part) {
  const Result<BulkMessage> message = decode_bulk(encode(BulkMessage(part)));
  if (!message) FAIL(message.error().message);
  REQUIRE(std::holds_alternative<Part>(*message));
  return std::get<Part>(*message);
}
template <class Part>
Part sent_to_executor(const Part& part) {
  const Result<ExecutorMessage> message = decode_executor(encode(ExecutorMessage(part)));
  if (!message) FAIL(message.error().message);
  REQUIRE(std::holds_alternative<Part>(*message));
  return std::get<Part>(*message);
}

void check_equal(const JobSpec& a, const JobSpec& b) {
  CHECK(a.kind == b.kind);
  CHECK(a.kind_version == b.kind_version);
  CHECK(a.parameters == b.parameters);
  CHECK(a.inputs == b.inputs);
  CHECK(a.seed == b.seed);
}

void check_equal(const ArtifactRef& a, const ArtifactRef& b) {
  CHECK(a.name == b.name);
  CHECK(a.digest == b.digest);
  CHECK(a.size == b.size);
  CHECK(a.inline_data == b.inline_data);
}

void check_equal(const JobResult& a, const JobResult& b) {
  REQUIRE(a.metrics.size() == b.metrics.size());
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    CHECK(a.metrics[i].name == b.metrics[i].name);
    CHECK(a.metrics[i].weight == b.metrics[i].weight);
    CHECK(a.metrics[i].sum == b.metrics[i].sum);
    CHECK(a.metrics[i].count == b.metrics[i].count);
    CHECK(a.metrics[i].missing == b.metrics[i].missing);
  }
  REQUIRE(a.curve.size() == b.curve.size());
  for (std::size_t i = 0; i < a.curve.size(); ++i) {
    CHECK(a.curve[i].step == b.curve[i].step);
    CHECK(a.curve[i].series == b.curve[i].series);
    CHECK(a.curve[i].value == b.curve[i].value);
  }
  REQUIRE(a.artifacts.size() == b.artifacts.size());
  for (std::size_t i = 0; i < a.artifacts.size(); ++i) check_equal(a.artifacts[i], b.artifacts[i]);
  CHECK(a.profile == b.profile);
  CHECK(a.duration_ms == b.duration_ms);
}

void check_equal(const JobFailure& a, const JobFailure& b) {
  CHECK(a.failure_class == b.failure_class);
  CHECK(a.message == b.message);
  CHECK(a.signal == b.signal);
  CHECK(a.log_tail == b.log_tail);
}

std::string error_of(const Message& message) {
  const Result<Message> decoded = decode_message(encode(message));
  if (decoded) return "accepted";
  CHECK(decoded.error().code == ErrorCode::invalid_input);
  return decoded.error().message;
}

bool says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("crc32c gives the vectors of RFC 3720") {
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c("") == 0);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  std::string up, down;
  for (char i = 0; i < 32; ++i) {
    up += i;
    down += static_cast<char>(31 - i);
  }
  CHECK(crc32c(up) == 0x46dd794e);
  CHECK(crc32c(down) == 0x113fdb5c);
}

TEST_CASE("a hello arrives as it was sent") {
  const WorkerHello hello = sample_hello();
  const WorkerHello got = sent(hello);
  CHECK(got.name == hello.name);
  CHECK(got.host == hello.host);
  CHECK(got.pid == hello.pid);
  CHECK(got.executors == hello.executors);
  CHECK(got.kinds == hello.kinds);
  CHECK(got.profile == hello.profile);
  CHECK(got.held == hello.held);
  CHECK(got.software_version == hello.software_version);
  CHECK(got.waits_for == hello.waits_for);
}

TEST_CASE("what a worker reports arrives as it was sent") {
  sent(Heartbeat{});
  sent(Goodbye{});
  CHECK(sent(WorkerWaits{"the disk is full"}).reason == "the disk is full");
  const Progress progress = sent(Progress{sample_lease(3), 10, 100, 1.5});
  CHECK(progress.lease == sample_lease(3));
  CHECK(progress.step == 10);
  CHECK(progress.total_steps == 100);
  CHECK(progress.loss_nats == 1.5);
  CHECK_FALSE(sent(Progress{sample_lease(3), 10, 100, {}}).loss_nats);
  CHECK(std::isnan(*sent(Progress{sample_lease(3), 1, 2, std::nan("")}).loss_nats));
  CHECK(sent(LeaseReturned{sample_lease(4)}).lease == sample_lease(4));

  const ResultMessage result = sent(ResultMessage{sample_lease(5), sample_result(), "log\xff"});
  CHECK(result.lease == sample_lease(5));
  check_equal(result.result, sample_result());
  CHECK(result.log == "log\xff");

  const FailureMessage failure = sent(FailureMessage{sample_lease(6), sample_failure()});
  CHECK(failure.lease == sample_lease(6));
  check_equal(failure.failure, sample_failure());
}

TEST_CASE("what a coordinator says arrives as it was sent") {
  const Welcome welcome =
      sent(Welcome{"1.2", "tcp://:5", 1000, {sample_lease(1), sample_lease(2)}});
  CHECK(welcome.software_version == "1.2");
  CHECK(welcome.bulk_endpoint == "tcp://:5");
  CHECK(welcome.heartbeat_ms == 1000);
  CHECK(welcome.dropped == std::vector<LeaseId>{sample_lease(1), sample_lease(2)});
  CHECK(sent(Refused{"the name is taken"}).reason == "the name is taken");
  CHECK(sent(Settled{sample_lease(1)}).lease == sample_lease(1));
  CHECK(sent(CancelLease{sample_lease(2)}).lease == sample_lease(2));

  const Leases leases = sent(Leases{{sample_job_lease(), Lease{}}});
  REQUIRE(leases.leases.size() == 2);
  const Lease& got = leases.leases[0];
  const Lease wanted = sample_job_lease();
  CHECK(got.id == wanted.id);
  check_equal(got.spec, wanted.spec);
  CHECK(got.affinity == wanted.affinity);
  REQUIRE(got.inputs.size() == wanted.inputs.size());
  for (std::size_t i = 0; i < got.inputs.size(); ++i) {
    CHECK(got.inputs[i].name == wanted.inputs[i].name);
    CHECK(got.inputs[i].id == wanted.inputs[i].id);
    REQUIRE(got.inputs[i].artifacts.size() == 1);
    check_equal(got.inputs[i].artifacts[0], wanted.inputs[i].artifacts[0]);
  }
}

TEST_CASE("requests and replies arrive as they were sent") {
  const Request request = sent(Request{7, "status", sample_parameters()});
  CHECK(request.id == 7);
  CHECK(request.verb == "status");
  CHECK(request.arguments == sample_parameters());
  const Reply value = sent(Reply{8, Value(sample_parameters()), false});
  CHECK(value.id == 8);
  CHECK(std::get<Value>(value.outcome) == Value(sample_parameters()));
  CHECK_FALSE(value.last);
  const Reply error = sent(Reply{9, Error{ErrorCode::out_of_space, "full"}, true});
  CHECK(error.last);
  CHECK(std::get<Error>(error.outcome).code == ErrorCode::out_of_space);
  CHECK(std::get<Error>(error.outcome).message == "full");
}

TEST_CASE("values keep their types: true is not 1, 1 is not 1.0, 1 is not its text") {
  for (const Value& value : {Value(true), Value(1), Value(1.0), Value("1"), Value(ValueList{}),
                             Value(ValueMap{}), Value(ValueList{ValueList{}, ValueMap{}})}) {
    const Reply reply = sent(Reply{1, value, true});
    CHECK(std::get<Value>(reply.outcome) == value);
    CHECK(std::get<Value>(reply.outcome).index() == value.index());
  }
}

TEST_CASE("every failure class arrives as itself") {
  for (int i = 0; i <= static_cast<int>(FailureClass::preempted); ++i) {
    JobFailure failure;
    failure.failure_class = static_cast<FailureClass>(i);
    CHECK(sent(FailureMessage{{}, failure}).failure.failure_class == failure.failure_class);
    CHECK(std::string(to_string(failure.failure_class)).size() > 4);
  }
}

TEST_CASE("bulk messages arrive as they were sent") {
  const ArtifactDigest digest = digest_of("x");
  const std::string data(limits::chunk_bytes, '\xfe');
  const BulkPut put = sent_bulk(BulkPut{digest, 1 << 20, 5, data});
  CHECK(put.digest == digest);
  CHECK(put.size == 1 << 20);
  CHECK(put.offset == 5);
  CHECK(put.data == data);
  const BulkPutAck ack = sent_bulk(BulkPutAck{digest, 77, true, "no room"});
  CHECK(ack.digest == digest);
  CHECK(ack.received == 77);
  CHECK(ack.complete);
  CHECK(ack.problem == "no room");
  const BulkGet get = sent_bulk(BulkGet{digest, 9, 16});
  CHECK(get.digest == digest);
  CHECK(get.offset == 9);
  CHECK(get.credit == 16);
  const BulkChunk chunk = sent_bulk(BulkChunk{digest, 100, 99, "z", ""});
  CHECK(chunk.digest == digest);
  CHECK(chunk.size == 100);
  CHECK(chunk.offset == 99);
  CHECK(chunk.data == "z");
  CHECK(sent_bulk(BulkChunk{digest, 0, 0, "", "unknown"}).problem == "unknown");
}

TEST_CASE("a chunk that sticks out of its artefact is refused, however large its numbers") {
  const ArtifactDigest digest = digest_of("x");
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  for (const BulkPut& put : {BulkPut{digest, 3, 1, "abc"}, BulkPut{digest, 3, 4, ""},
                             BulkPut{digest, 3, huge, "abc"}, BulkPut{digest, huge, huge, "a"}}) {
    CHECK_FALSE(decode_bulk(encode(BulkMessage(put))).ok());
  }
  const std::string too_much(limits::chunk_bytes + 1, 'x');
  CHECK_FALSE(decode_bulk(encode(BulkMessage(BulkPut{digest, 1 << 20, 0, too_much}))).ok());
  CHECK(decode_bulk(encode(BulkMessage(BulkPut{digest, huge, huge - 1, "a"}))).ok());
}

TEST_CASE("executor messages arrive as they were sent") {
  const ExecutorReady ready =
      sent_to_executor(ExecutorReady{{{"pretrain", 2}}, sample_profile(), "1.2"});
  CHECK(ready.kinds == std::vector<KindVersion>{{"pretrain", 2}});
  CHECK(ready.profile == sample_profile());
  CHECK(ready.software_version == "1.2");
  CHECK(sent_to_executor(Progress{sample_lease(1), 2, 3, 4.0}).loss_nats == 4.0);
  check_equal(sent_to_executor(FailureMessage{sample_lease(1), sample_failure()}).failure,
              sample_failure());
  const ExecutorFinished finished =
      sent_to_executor(ExecutorFinished{sample_lease(2), sample_result()});
  CHECK(finished.lease == sample_lease(2));
  check_equal(finished.result, sample_result());
  const RunJob run = sent_to_executor(sample_run());
  CHECK(run.lease == sample_run().lease);
  check_equal(run.spec, sample_run().spec);
  CHECK(run.output_dir == sample_run().output_dir);
  REQUIRE(run.inputs.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(run.inputs[i].name == sample_run().inputs[i].name);
    CHECK(run.inputs[i].id == sample_run().inputs[i].id);
    CHECK(run.inputs[i].path == sample_run().inputs[i].path);
  }
  sent_to_executor(StopExecutor{});
}

TEST_CASE("a result with impossible artefacts is refused") {
  const auto with = [](std::vector<ArtifactRef> artifacts) {
    ResultMessage message;
    message.result.artifacts = std::move(artifacts);
    return Message(message);
  };
  const ArtifactDigest digest = digest_of("abc");
  CHECK(error_of(with({{"a", digest, 3, "abc"}, {"b/c", digest, 3, {}}})) == "accepted");
  CHECK(says(error_of(with({{"", digest, 3, {}}})), "without a name"));
  CHECK(says(error_of(with({{"a", digest, 3, {}}, {"a", digest, 3, {}}})), "there twice"));
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", ".."}) {
    CHECK(says(error_of(with({{path, digest, 3, {}}})), "leads out of its folder"));
  }
  CHECK(says(error_of(with({{std::string("a\0b", 3), digest, 3, {}}})), "leads out"));
  CHECK(says(error_of(with({{"a", digest, 4, "abc"}})), "size disagree"));
  const std::string large(limits::inline_artifact_bytes + 1, 'x');
  CHECK(says(error_of(with({{"a", digest_of(large), large.size(), large}})), "over the limit"));
  const std::string most(limits::inline_artifact_bytes, 'x');
  std::vector<ArtifactRef> many;
  for (std::size_t i = 0; i <= limits::result_inline_bytes / most.size(); ++i) {
    many.push_back({std::to_string(i), digest_of(most), most.size(), most});
  }
  CHECK(says(error_of(with(many)), "bytes inline, over the limit"));
  many.pop_back();
  CHECK(error_of(with(many)) == "accepted");
}

TEST_CASE("a hello without a name or executors, and texts that are too long, are refused") {
  WorkerHello hello = sample_hello();
  hello.name.clear();
  CHECK(says(error_of(hello), "name is empty"));
  hello = sample_hello();
  hello.executors = 0;
  CHECK(says(error_of(hello), "without executors"));
  hello = sample_hello();
  hello.name = std::string(limits::name_bytes + 1, 'x');
  CHECK(says(error_of(hello), "over the limit of 256"));
  hello.name = "caf\xe9";
  CHECK(says(error_of(hello), "not UTF-8"));
  CHECK(says(error_of(Welcome{"", "", 0, {}}), "0 ms"));
}

TEST_CASE("texts of failures are cut to their limits and made UTF-8, not refused") {
  JobFailure failure;
  failure.message = "\xff" + std::string(limits::error_text_bytes, 'm');
  failure.log_tail = "start" + std::string(limits::log_tail_bytes, 'l') + "end";
  const JobFailure got = sent(FailureMessage{{}, failure}).failure;
  CHECK(got.message.size() <= limits::error_text_bytes);
  CHECK(got.message.starts_with("\xEF\xBF\xBDmmm"));
  CHECK(got.log_tail.size() == limits::log_tail_bytes);
  CHECK(got.log_tail.ends_with("lend"));
  CHECK(sent(Refused{std::string(100'000, 'r')}).reason.size() == limits::error_text_bytes);
}

TEST_CASE("a result too large for a frame fails its job instead of its worker") {
  JobResult result;
  result.curve.assign(200'000, CurvePoint{1, std::string(64, 's'), 2});
  const auto message = decode_message(encode(Message(ResultMessage{sample_lease(1), result, ""})));
  REQUIRE(message.ok());
  REQUIRE(std::holds_alternative<FailureMessage>(*message));
  CHECK(std::get<FailureMessage>(*message).lease == sample_lease(1));
  CHECK(says(std::get<FailureMessage>(*message).failure.message, "over the limit"));
  const auto local =
      decode_executor(encode(ExecutorMessage(ExecutorFinished{sample_lease(1), result})));
  CHECK(std::holds_alternative<FailureMessage>(local.value()));
}

TEST_CASE("a reply too large for a frame becomes an error that says so") {
  const Reply got = sent(Reply{5, Value(std::string(limits::message_bytes, 'x')), false});
  CHECK(got.id == 5);
  CHECK(got.last);
  CHECK(says(std::get<Error>(got.outcome).message, "over the limit"));
}

}  // namespace prefgrid
