// Hellos, names, versions, silence.
#include "tests/coordinator/core/core_driver.h"

namespace prefgrid {

TEST_CASE("any message counts as a heartbeat, and heartbeats of known workers are answered") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  for (int i = 0; i < 10; ++i) {
    driver.advance(limits::lease_timeout_ms - 1);
    const Effects answer = i % 2 == 0 ? driver.from("w", Heartbeat{})
                                      : driver.from("w", Progress{driver.lease("train"), 1, 2, {}});
    CHECK(messages_to<Heartbeat>(answer, "w").size() == (i % 2 == 0 ? 1 : 0));
  }
  CHECK(driver.lease("train").attempt == 1);
  CHECK(driver.from("stranger", Heartbeat{}).sends.empty());
}

TEST_CASE("a loop that stood still blames no worker") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  driver.jump(10 * limits::lease_timeout_ms);
  driver.step(Tick{});
  CHECK(driver.state("train") == "leased");
  driver.advance(limits::lease_timeout_ms - 1);
  driver.step(LoopStalled{});
  driver.advance(limits::lease_timeout_ms - 1);
  CHECK(driver.state("train") == "leased");
  driver.advance(1);
  CHECK(driver.state("train") == "ready");
}

TEST_CASE("a worker thought lost takes its lease up again if nobody else has it") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  const LeaseId lease = driver.lease("train");
  driver.advance(limits::lease_timeout_ms);
  REQUIRE(driver.state("train") == "ready");
  WorkerHello back = CoreDriver::hello("w", {"train"});
  back.held = {lease};
  const Effects welcome = driver.from("w", back);
  REQUIRE(messages_to<Welcome>(welcome, "w").size() == 1);
  CHECK(messages_to<Welcome>(welcome, "w")[0].dropped.empty());
  CHECK(leases_to(welcome, "w").empty());
  CHECK(driver.state("train") == "leased");
  CHECK(driver.core().job(lease.job)->attempt == 1);
}

TEST_CASE("held leases that are void are dropped by the welcome") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train:a").job("train:b"));
  driver.connect("w", {"train"}, 2);
  driver.result("w", driver.lease("train:b"));
  WorkerHello again = CoreDriver::hello("w", {"train"}, 2);
  again.held = {driver.lease("train:a"),
                driver.lease("train:b"),
                {key_of("train:a"), 9},
                {key_of("nothing"), 1}};
  const auto welcome = messages_to<Welcome>(driver.from("w", again), "w");
  REQUIRE(welcome.size() == 1);
  CHECK(welcome[0].heartbeat_ms == limits::heartbeat_ms);
  CHECK(welcome[0].dropped.size() == 3);
  CHECK(driver.state("train:a") == "leased");
}

TEST_CASE("a failed attempt that the worker still names is not taken up again") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  const LeaseId lease = driver.lease("train");
  driver.failure("w", lease);
  WorkerHello again = CoreDriver::hello("w", {"train"});
  again.held = {lease};
  CHECK(messages_to<Welcome>(driver.from("w", again), "w")[0].dropped.size() == 1);
  driver.failure("w", lease);
  CHECK(driver.core().counters().failures_charged == 1);
}

TEST_CASE("a lease that the same process does not show was lost on the way: sent again") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  const Effects again = driver.connect("w", {"train"});
  CHECK(leases_to(again, "w") == std::vector{LeaseId{key_of("train"), 1}});
  // On a new connection of the same process too.
  const Effects moved = driver.from("w2", CoreDriver::hello("w", {"train"}));
  CHECK(leases_to(moved, "w2") == std::vector{LeaseId{key_of("train"), 1}});
  CHECK(driver.core().workers().size() == 1);
}

TEST_CASE("a name that another process holds is refused, naming the holder") {
  CoreDriver driver;
  driver.connect("w", {"train"});
  WorkerHello other = CoreDriver::hello("w", {"train"});
  other.pid = 200;
  auto refused = messages_to<Refused>(driver.from("p2", other), "p2");
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].reason.find("process 100 on host host-w") != std::string::npos);

  other.host = "elsewhere";
  refused = messages_to<Refused>(driver.step(PeerMessage{PeerId{"p3"}, other, {}, true}), "p3");
  CHECK(refused.size() == 1);
  CHECK(driver.core().holder("w")->pid == 100);
}

TEST_CASE("the same name and host take over at once when the old process is gone or silent") {
  for (const bool known_gone : {true, false}) {
    CoreDriver driver;
    driver.submit(PlanBuilder().job("train"));
    driver.connect("w", {"train"});
    if (!known_gone) driver.advance(3 * limits::heartbeat_ms + 1);
    WorkerHello next = CoreDriver::hello("w", {"train"});
    next.pid = 200;
    const Effects taken = driver.step(PeerMessage{PeerId{"p2"}, next, {}, known_gone});
    CHECK(messages_to<Welcome>(taken, "p2").size() == 1);
    CHECK(events_of<history::WorkerLeft>(taken) == 1);
    CHECK(leases_to(taken, "p2") == std::vector{LeaseId{key_of("train"), 2}});
    CHECK(driver.core().holder("w")->pid == 200);
  }
}

TEST_CASE("hellos that make no sense are refused and change nothing") {
  CoreDriver driver;
  for (WorkerHello hello :
       {CoreDriver::hello("", {"train"}), CoreDriver::hello(std::string(300, 'x'), {"train"}),
        CoreDriver::hello("a\nb", {"train"}), CoreDriver::hello("w", {"train"}, 0),
        CoreDriver::hello("w", {"train"}, 1'000'000)}) {
    CHECK(messages_to<Refused>(driver.from("p", hello), "p").size() == 1);
  }
  CHECK(driver.core().workers().empty());
}

TEST_CASE("messages that only a coordinator sends are ignored") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  for (const Message& message : std::vector<Message>{Welcome{}, Refused{}, Leases{}, Settled{},
                                                     CancelLease{}, Request{}, Reply{}}) {
    const Effects effects = driver.from("p", message);
    CHECK(effects.facts.empty());
    CHECK(effects.sends.empty());
  }
}

TEST_CASE("a worker that is known to be gone hands its leases on at once") {
  CoreDriver driver;
  driver.submit(PlanBuilder().job("train"));
  driver.connect("w", {"train"});
  driver.step(WorkerGone{"w", "its process ended with signal 9"});
  CHECK(driver.core().workers().empty());
  CHECK(driver.state("train") == "ready");
  CHECK(driver.core().counters().failures_charged == 1);
}

TEST_CASE("a drained worker finishes what it has and gets nothing new") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 5));
  driver.connect("w", {"train"});
  driver.step(DrainWorker{"w", true});
  std::size_t ran = 0;
  for (int i = 0; i < 5; ++i) {
    const std::string job = "train:" + std::to_string(i);
    if (driver.state(job) != "leased") continue;
    driver.result("w", driver.lease(job));
    ++ran;
  }
  CHECK(ran == 2);
  CHECK(driver.counts().ready == 3);
  CHECK(driver.core().why_waiting(key_of("train:4")).find("draining") != std::string::npos);
  driver.step(DrainWorker{"w", false});
  CHECK(driver.counts().running > 0);
}

TEST_CASE("a worker that says goodbye is gone at once, and nothing that it held is charged") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 6));
  driver.connect("leaving", {"train"}, 2);
  REQUIRE(driver.counts().running > 2);
  const Effects gone = driver.from("leaving", Goodbye{});
  CHECK(messages_to<Goodbye>(gone, "leaving").size() == 1);
  CHECK(events_of<history::WorkerLeft>(gone) == 1);
  CHECK(driver.core().workers().empty());
  CHECK(driver.counts().ready == 6);
  CHECK(driver.core().counters().failures_charged == 0);
  // Said twice, or by a stranger: answered, so that it need not wait.
  CHECK(messages_to<Goodbye>(driver.from("leaving", Goodbye{}), "leaving").size() == 1);
  // The same name joins again without being refused.
  driver.connect("leaving", {"train"}, 2);
  CHECK(driver.core().workers().size() == 1);
}

TEST_CASE("a result sent before the goodbye is taken, and one that comes after it, too") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 2));
  driver.connect("w", {"train"}, 2);
  driver.result("w", driver.lease("train:0"));
  driver.from("w", Goodbye{});
  CHECK(driver.state("train:0") == "done");
  driver.result("w", driver.lease("train:1"));
  CHECK(driver.state("train:1") == "done");
}

TEST_CASE("a worker that waits for room gets no lease until it beats again, and then at once") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 3));
  driver.connect("w", {"train"});
  driver.from("w", WorkerWaits{"full"});
  for (const char* job : {"train:0", "train:1", "train:2"}) {
    driver.from("w", LeaseReturned{driver.lease(job)});
  }
  REQUIRE(driver.counts().ready == 3);
  const Effects waits = driver.from("w", WorkerWaits{"the disk of /cache is full"});
  CHECK(messages_to<Heartbeat>(waits, "w").size() == 1);
  REQUIRE(driver.core().workers().size() == 1);
  CHECK(driver.core().workers()[0].waits_for == "the disk of /cache is full");
  for (int i = 0; i < 60; ++i) {
    CHECK(leases_to(driver.advance(1'000), "w").empty());
    CHECK(leases_to(driver.from("w", WorkerWaits{"the disk of /cache is full"}), "w").empty());
  }
  CHECK(driver.core().why_waiting(key_of("train:0")).find("room on their disks") !=
        std::string::npos);
  const Effects again = driver.from("w", Heartbeat{});
  CHECK(!leases_to(again, "w").empty());  // what it handed back does not mean that it leaves
  CHECK(driver.core().workers()[0].waits_for.empty());
  CHECK(driver.core().counters().failures_charged == 0);
}

TEST_CASE("a worker that comes back waiting gets nothing") {
  CoreDriver driver;
  driver.submit(PlanBuilder().jobs("train", 3));
  WorkerHello hello = CoreDriver::hello("w", {"train"});
  hello.waits_for = "full";
  CHECK(leases_to(driver.from("w", hello), "w").empty());
  hello.waits_for.clear();
  CHECK(!leases_to(driver.from("w", hello), "w").empty());
  // A stranger's word about its disk is not answered: it is to say hello.
  CHECK(messages_to<Heartbeat>(driver.from("x", WorkerWaits{"full"}), "x").empty());
}

}  // namespace prefgrid
