// Hawser where there is no RDMA device, no libibverbs and no CUDA driver: it opens, says what is missing, and goes on
// by shm and tcp. In a process whose root has none of them. Names begin with the row of the list of conformance.

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hawser/hawser.h>
#include <hawser/rdma.h>

#include "../must.h"
#include "bare_root.h"

namespace hawser::bare_root {
namespace {

using namespace std::chrono_literals;

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text << '\n';
}

/// A RoCE port that could be used, as the kernel shows it.
void add_device(const std::string& root) {
  const std::string device = root + "/sys/class/infiniband/roce0", port = device + "/ports/1";
  put(device + "/node_type", "1: CA");
  put(port + "/state", "4: ACTIVE");
  put(port + "/link_layer", "Ethernet");
  put(port + "/rate", "100 Gb/sec (4X EDR)");
  put(port + "/gids/0", "0000:0000:0000:0000:0000:ffff:0a4d:0001");
  put(port + "/gid_attrs/types/0", "RoCE v2");
  put(port + "/gid_attrs/ndevs/0", "eth0");
}
void add_nothing(const std::string&) {}

void want(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

AgentOptions quiet(const std::string& name, std::vector<BackendSpec> backends = {}) {
  AgentOptions options;
  options.name = name;
  options.backends = std::move(backends);
  options.log.level = LogLevel::kOff;
  return options;
}

const BackendReport& report_of(const std::vector<BackendReport>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &BackendReport::name);
  want(found != all.end(), name + " is not listed");
  return *found;
}

/// A write between two agents; the backend that carried it.
std::string carry(Agent& a, Agent& b) {
  std::vector<std::byte> source(4096, std::byte{7}), target(4096);
  const Region from = must(a.add_region({.name = "source", .bytes = source}));
  const Region to = must(b.add_region({.name = "target", .bytes = target}));
  const Peer peer = must(a.add_peer(must(b.card())));
  const LocalRange here = from.range(0, source.size());
  const RemoteRange there = peer.range("target", 0, target.size());
  Transfer sent = must(must(a.plan_write(peer, {&here, 1}, {&there, 1})).submit());
  const Instant end = Clock::steady().now() + 10s;
  while (!sent.done() && Clock::steady().now() < end) {
    a.poll();
    b.poll();
  }
  want(sent.done() && sent.status().ok(), "the write ended with " + sent.status().to_string());
  want(target == source, "the bytes did not arrive");
  const std::vector<PathCounters> paths = a.counters().paths;
  want(paths.size() == 1, std::to_string(paths.size()) + " paths");
  return paths[0].backend;
}

void expect_good(const Outcome& outcome) {
  if (!outcome.skipped.empty()) GTEST_SKIP() << outcome.skipped;
  EXPECT_EQ(outcome.failure, "");
}

class Without : public testing::Test {
 protected:
  void SetUp() override {
#ifdef HAWSER_SANITIZE_THREAD
    GTEST_SKIP() << "ThreadSanitizer does not follow a child of a process with threads";
#endif
  }
};

/// Opened without a word about backends: all but verbs are there, and carry.
std::string falls_back(const std::string& reason) {
  Agent a = must(Agent::open(quiet("a"))), b = must(Agent::open(quiet("b")));
  const std::vector<BackendReport> reports = a.backends();
  for (const char* name : {"loopback", "shm", "tcp"}) {
    const BackendReport& report = report_of(reports, name);
    want(report.open, std::string(name) + " is not open: " + report.cause.to_string());
  }
  const BackendReport& verbs = report_of(reports, "verbs");
  want(!verbs.open, "verbs is open");
  want(verbs.cause.to_string().find(reason) != std::string::npos, verbs.cause.to_string() + " does not say: " + reason);
  want(!a.has_backend("verbs") && !a.require_backend("verbs").ok(), "verbs is told to be there");
  want(carry(a, b) == "shm", "it did not go by shm");
  Agent c = must(Agent::open(quiet("c", {tcp()}))), d = must(Agent::open(quiet("d", {tcp()})));
  want(carry(c, d) == "tcp", "it did not go by tcp");
  return {};
}

/// The text of the error with which verbs does not open.
std::string refusal(const Params& params = {}) {
  const Result<Agent> opened = Agent::open(quiet("strict", {verbs(params)}));
  want(!opened, "verbs opened");
  want(opened.error().code() == Code::kUnsupported, opened.error().to_string());
  return opened.error().to_string();
}
std::string names_all(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) want(text.find(part) != std::string::npos, text + " does not say: " + part);
  return {};
}

TEST_F(Without, C23_ADeviceItGoesByShmAndTcp) {
  expect_good(run(add_nothing, [] { return falls_back("this host has no RDMA device"); }));
}

TEST_F(Without, C23_ADeviceVerbsDoesNotOpenAndSaysWhatToDo) {
  expect_good(run(add_nothing, [] {
    return names_all(refusal(), {"verbs", "this host has no RDMA device", "hawser doctor"});
  }));
}

TEST_F(Without, C23_LibibverbsItGoesByShmAndTcp) {
  expect_good(run(add_device, [] { return falls_back("libibverbs cannot be opened"); }));
}

TEST_F(Without, C23_LibibverbsVerbsDoesNotOpenAndSaysWhatToDo) {
  expect_good(run(add_device, [] {
    return names_all(refusal(), {"libibverbs cannot be opened", "libibverbs.so.1", "install rdma-core"});
  }));
}

TEST_F(Without, C23_ACudaDriverTheHintSaysSo) {
  expect_good(run(
      add_device,
      [] {
        return names_all(refusal({{"near", "cuda:0"}}), {"the CUDA driver cannot be opened", "libcuda.so.1"});
      },
      [] { return ::dlopen("libibverbs.so.1", RTLD_NOW) == nullptr ? "libibverbs is not installed" : ""; }));
}

/// Batches of one-sided operations, in the shape of an RDMA backend.
std::string moves_buffers() {
  Agent owner = must(Agent::open(quiet("owner"))), user = must(Agent::open(quiet("user")));
  std::vector<std::byte> theirs(4096, std::byte{9}), ours(4096);
  rdma::Backend there = must(rdma::Backend::open(owner, {.thread = false}));
  rdma::Backend here = must(rdma::Backend::open(user, {.thread = false}));
  const rdma::RemoteBuffer buffer = must(there.request_buffer(1, must(there.local_memory(theirs, {}, true))));
  const rdma::RemoteBuffer sent = must(rdma::RemoteBuffer::decode(buffer.encode()));
  const rdma::Batch batch = must(here.submit(
      {{.type = rdma::OpType::kReadIntoLocal, .local = must(here.local_memory(ours, {}, true)), .remote = sent}}, 10s));
  const Instant end = Clock::steady().now() + 10s;
  while (!batch.done() && Clock::steady().now() < end) {
    (void)batch.wait(1ms);
    (void)there.serve();
    owner.poll();
  }
  want(batch.status().ok(), batch.status().to_string());
  want(ours == theirs, "the bytes did not arrive");
  return {};
}

TEST_F(Without, C23_AnyOfThemRemoteBuffersWork) { expect_good(run(add_nothing, moves_buffers)); }

TEST_F(Without, C23_NothingIsLoadedBeforeItIsAskedFor) {
  std::vector<std::string> loaded;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* names) {
        static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
        return 0;
      },
      &loaded);
  EXPECT_GT(loaded.size(), 3u);
  for (const char* vendor : {"ibverbs", "libefa", "libmlx5", "libcuda", "torch"}) {
    EXPECT_THAT(loaded, testing::Not(testing::Contains(testing::HasSubstr(vendor))));
  }
}

}  // namespace
}  // namespace hawser::bare_root
