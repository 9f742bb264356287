// Agents of one name, and agents without regions yet, over a real etcd.

#include <atomic>

#include "name_suite.h"
#include "one_server.h"

namespace hawser::conformance {
namespace {

class EtcdPlace final : public NamePlace {
 public:
  std::shared_ptr<Directory> open() override {
    return etcd({.endpoints = {OneServer::get().server().endpoint()},
                 .prefix = prefix_,
                 .timeout = etcd_test::kPatience})
        .value();
  }

 private:
  static inline std::atomic<int> places_{0};
  const std::string prefix_ = "names-" + std::to_string(++places_) + "/";
};

const NameFactory kEtcd{"etcd", [] { return std::make_unique<EtcdPlace>(); }};

INSTANTIATE_TEST_SUITE_P(EtcdNames, NameTrials, testing::Values(kEtcd),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace hawser::conformance
