#pragma once

// OneServer: one etcd for all tests of a program that need no more than a namespace of their own in it.
//
// Thread rule: the test's thread. Lifetime: until all tests have run.

#include <gtest/gtest.h>

#include <memory>

#include "etcd_server.h"

namespace hawser::conformance {

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

[[maybe_unused]] inline const testing::Environment* const kOneServer =
    testing::AddGlobalTestEnvironment(&OneServer::get());

}  // namespace hawser::conformance
