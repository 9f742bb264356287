// The common suite of directories over a real etcd: one server for all of it, a namespace for each test.

#include <atomic>

#include "directory_suite.h"
#include "etcd_server.h"

namespace hawser::conformance {
namespace {

class OneServer : public testing::Environment {
 public:
  static OneServer& get() {
    static OneServer& one = *new OneServer;  // Owned by GoogleTest.
    return one;
  }
  etcd_test::EtcdServer& server() {
    if (!server_) {
      server_ = std::make_unique<etcd_test::EtcdServer>();
      server_->start();
      EXPECT_TRUE(server_->await_ready());
    }
    return *server_;
  }
  void TearDown() override { server_.reset(); }

 private:
  std::unique_ptr<etcd_test::EtcdServer> server_;
};

[[maybe_unused]] const testing::Environment* const kOneServer = testing::AddGlobalTestEnvironment(&OneServer::get());

class EtcdWorld final : public DirectoryWorld {
 public:
  EtcdWorld() : prefix_("world-" + std::to_string(++worlds_) + "/") {}
  ~EtcdWorld() override { release(); }

  std::shared_ptr<Directory> open() override {
    return etcd({.endpoints = {OneServer::get().server().endpoint()},
                 .prefix = prefix_,
                 .timeout = etcd_test::kPatience})
        .value();
  }
  Instant now() const override { return Clock::steady().now(); }
  void advance(Duration by) override { etcd_test::nap(by); }
  void hold() override { OneServer::get().server().stop(); }
  void release() override { OneServer::get().server().resume(); }
  Duration lease() const override { return std::chrono::seconds(4); }
  int jobs_max() const override { return 8000; }

 private:
  static inline std::atomic<int> worlds_{0};
  const std::string prefix_;
};

const DirectoryFactory kEtcd{"etcd", [] { return std::make_unique<EtcdWorld>(); }};

INSTANTIATE_TEST_SUITE_P(Etcd, DirectorySuite, testing::Values(kEtcd),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace hawser::conformance
