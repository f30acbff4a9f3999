// Who gets what, how much of it, in which order.
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {
namespace {

// Lets the worker finish whatever it holds, job after job, until nothing is left; returns the
// order.
std::vector<std::string> run_alone(CoreDriver& driver, const std::string& worker,
                                   const std::vector<std::string>& jobs, std::vector<LeaseId> held,
                                   std::uint64_t duration_ms) {
  std::vector<std::string> order;
  while (!held.empty()) {
    const LeaseId lease = held.front();
    held.erase(held.begin());
    for (const std::string& job : jobs) {
      if (key_of(job) == lease.job) order.push_back(job);
    }
    const auto more = leases_to(driver.result(worker, lease, duration_ms), worker);
    held.insert(held.end(), more.begin(), more.end());
  }
  return order;
}

}  // namespace

TEST_CASE("priority goes first, then the longest path") {
  CoreDriver driver;
  driver.submit(PlanBuilder()
                    .kind("any")
                    .job("short")
                    .job("long")
                    .job("middle", {"long"})
                    .job("last", {"middle"}),
                1, 0);
  driver.submit(PlanBuilder().kind("any").job("urgent"), 2, 5);
  const auto first = leases_to(driver.connect("w", {"any"}), "w");
  const auto order =
      run_alone(driver, "w", {"short", "long", "middle", "last", "urgent"}, first, 100'000);
  CHECK(order == std::vector<std::string>{"urgent", "long", "middle", "short", "last"});
}

TEST_CASE("a shared job runs as early as its most urgent experiment wants") {
  CoreDriver driver;
  driver.submit(PlanBuilder().kind("any").job("a").job("b").job("c"), 1, 0);
  driver.submit(PlanBuilder().kind("any").job("c"), 2, 1);
  CHECK(leases_to(driver.connect("w", {"any"}), "w")[0].job == key_of("c"));
}

TEST_CASE("a job that no worker can run never blocks others, and says why it waits") {
  CoreDriver driver;
  driver.submit(PlanBuilder().kind("strange", 3).job("x").kind("plain").job("y"), 1);
  CHECK(driver.core().why_waiting(key_of("x")).find("no worker is connected") != std::string::npos);
  WorkerHello hello = CoreDriver::hello("w", {"plain"});
  hello.kinds.push_back({"strange", 2});
  driver.from("w", hello);
  CHECK(driver.state("y") == "leased");
  CHECK(driver.state("x") == "ready");
  const std::string why = driver.core().why_waiting(key_of("x"));
  CHECK(why.find("strange version 3") != std::string::npos);
  CHECK(why.find("version 2") != std::string::npos);
  hello.name = "new";
  hello.kinds = {{"strange", 3}};
  driver.from("new", hello);
  CHECK(driver.state("x") == "leased");
  CHECK(driver.worker_of("x") == "new");
}

TEST_CASE("kinds of an experiment that comes later are matched with workers that wait") {
  CoreDriver driver;
  driver.connect("w", {"train"});
  const Effects submitted = driver.submit(PlanBuilder().job("train"));
  CHECK(leases_to(submitted, "w").size() == 1);
}

TEST_CASE("jobs of equal affinity go to the worker that has loaded it") {
  CoreDriver driver;
  PlanBuilder plan;
  plan.kind("eval");
  for (int i = 0; i < 40; ++i) plan.job("eval:" + std::to_string(i), {}, 1 + i % 2);
  driver.submit(plan);
  std::map<std::string, std::vector<LeaseId>> held;
  for (const std::string worker : {"a", "b"}) {
    held[worker] = leases_to(driver.connect(worker, {"eval"}), worker);
  }
  std::map<std::string, std::map<int, int>> ran;
  int done = 0;
  while (done < 40) {
    for (const std::string worker : {"a", "b"}) {
      if (held[worker].empty()) continue;
      const LeaseId lease = held[worker].front();
      held[worker].erase(held[worker].begin());
      for (int i = 0; i < 40; ++i) {
        if (key_of("eval:" + std::to_string(i)) == lease.job) ++ran[worker][i % 2];
      }
      const Effects effects = driver.result(worker, lease, 60'000);
      for (const std::string to : {"a", "b"}) {
        for (const LeaseId& more : leases_to(effects, to)) held[to].push_back(more);
      }
      ++done;
    }
  }
  // Each has one affinity, up to what is shared out at the very end.
  for (const std::string worker : {"a", "b"}) {
    CHECK(std::max(ran[worker][0], ran[worker][1]) >= 18);
    CHECK(std::min(ran[worker][0], ran[worker][1]) <= 2);
  }
}

TEST_CASE("a group that a worker has loaded does not starve an older one for ever") {
  CoreDriver driver;
  PlanBuilder plan;
  plan.kind("eval").job("eval:other", {}, 7);
  for (int i = 0; i < 2'000; ++i) plan.job("eval:" + std::to_string(i), {}, 8);
  driver.connect("w", {"eval"});
  driver.submit(PlanBuilder().kind("eval").job("eval:first", {}, 8));
  driver.result("w", driver.lease("eval:first"), 60'000);
  auto held = leases_to(driver.submit(plan, 2), "w");
  int before = 0;
  while (driver.state("eval:other") == "ready") {
    REQUIRE(!held.empty());
    const auto more = leases_to(driver.result("w", held.front(), 60'000), "w");
    held.erase(held.begin());
    held.insert(held.end(), more.begin(), more.end());
    ++before;
  }
  CHECK(before <= 40);
}

TEST_CASE("batches hold about a second of work, and never more than a message's worth") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("noop", 5'000));
  driver.connect("w", {"noop"});
  CHECK(driver.counts().running == 2);  // nothing is known yet
  for (int i = 0; driver.state("noop:" + std::to_string(i)) == "leased" && i < 200; ++i) {
    driver.result("w", driver.lease("noop:" + std::to_string(i)), 20);
  }
  CHECK(driver.counts().running >= 40);
  CHECK(driver.counts().running <= 60);
  Effects effects;
  for (int i = 200; i < 300; ++i) {
    const std::string job = "noop:" + std::to_string(i);
    if (driver.state(job) == "leased") effects = driver.result("w", driver.lease(job), 0);
    for (const Send& send : effects.sends) {
      if (const auto* leases = std::get_if<SendLeases>(&send)) {
        CHECK(leases->leases.size() <= limits::leases_per_batch);
      }
    }
  }
  CHECK(driver.counts().running <= 256);
}

TEST_CASE("no worker idles near the end while another holds a queue") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 10));
  for (int i = 0; i < 10; ++i) driver.connect("w" + std::to_string(i), {"train"});
  for (const WorkerView& worker : driver.core().workers()) CHECK(worker.leases == 1);
}

TEST_CASE("an idle worker takes a queued long job from a worker that has two") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 5));
  driver.connect("a", {"train"});
  driver.result("a", driver.lease("train:0"), 600'000);
  driver.result("a", driver.lease("train:1"), 600'000);
  REQUIRE(driver.core().holder("a")->leases == 2);
  driver.connect("b", {"train"});  // takes the last one
  REQUIRE(driver.counts().ready == 0);
  const Effects joined = driver.connect("c", {"train"});
  CHECK(messages_to<CancelLease>(joined, "a").size() == 1);
  REQUIRE(leases_to(joined, "c").size() == 1);
  CHECK(leases_to(joined, "c")[0].attempt == 2);
  for (const WorkerView& worker : driver.core().workers()) CHECK(worker.leases == 1);
}

}  // namespace prefgrid
