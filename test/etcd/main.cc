// Tests with a real etcd. Where it is not installed they are skipped and counted.

#include <gtest/gtest.h>

#include <iostream>

#include "etcd_server.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!hawser::etcd_test::has_etcd()) {
    std::cout << "SKIPPED: etcd is not installed (Debian package etcd-server)\n";
    return 77;
  }
  return RUN_ALL_TESTS();
}
