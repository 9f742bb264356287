// The common suite of directories over a real etcd: one server for all of it, a namespace for each test.

#include <atomic>

#include "directory_suite.h"
#include "one_server.h"

namespace hawser::conformance {
namespace {

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

const DirectoryFactory kEtcdDirectory{"etcd", [] { return std::make_unique<EtcdWorld>(); }};

INSTANTIATE_TEST_SUITE_P(Etcd, DirectorySuite, testing::Values(kEtcdDirectory),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace hawser::conformance
