// Requests that are looked at while they are posted again, and registrations that their agent withdrew.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/compat/status.h>

#include "agents.h"

namespace hawser::compat {
namespace {

TEST(CompatRequest, IsLookedAtByOneThreadAndPostedAgainByAnother) {
  Side a("a"), b("b");
  a.knows(b);
  b.knows(a);
  auto request = a.agent.create_xfer_req(XferOp::kWrite, a.blocks(16), b.blocks(16), "b").value();
  ASSERT_TRUE(a.run(request).ok());
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> looks{0};
  std::thread looker([&] {
    while (!is_over) {
      const Result<bool> busy = a.agent.in_progress(request);
      EXPECT_TRUE(busy.status().ok()) << busy.status().to_string();
      ++looks;
    }
  });
  for (int i = 0; i < 100; ++i) {
    a.memory[0] = b.memory[0] = static_cast<char>(i);
    ++a.memory[0];
    ASSERT_TRUE(a.run(request).ok());
    EXPECT_EQ(b.memory[0], a.memory[0]) << "post " << i << " was said to be over before it was";
  }
  EXPECT_TRUE(eventually([&] { return looks > 0; }));
  is_over = true;
  looker.join();
  EXPECT_TRUE(request.release().ok());
  EXPECT_FALSE(a.agent.in_progress(request).has_value());
}

RegDescList list_of(const std::vector<char>& memory) {
  RegDescList list(MemType::kDram);
  list.add(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
  return list;
}

XferDescList blocks_of(const std::vector<char>& memory) {
  XferDescList list(MemType::kDram);
  list.add(reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
  return list;
}

// A peer's regions are made when they are wanted, so what is wanted late must be what was loaded, and nothing that took
// its number since.
TEST(CompatRequest, ARegistrationThatItsAgentWithdrewIsNotTakenForItsSuccessor) {
  Side a("a"), b("b");
  const std::vector<char> old(4096), fresh(4096);
  auto withdrawn = b.agent.register_memory(list_of(old)).value();
  a.knows(b);
  EXPECT_TRUE(withdrawn.deregister().ok());
  const auto successor = b.agent.register_memory(list_of(fresh)).value();
  a.knows(b);
  EXPECT_TRUE(a.agent.prepare_xfer_dlist("b", blocks_of(fresh)).has_value());
  const Result<PreparedList> late = a.agent.prepare_xfer_dlist("b", blocks_of(old));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(code_of(late.error()), NixlCode::kNotFound);
  EXPECT_NE(late.error().message().find("withdrawn"), std::string_view::npos) << late.error().to_string();
}

}  // namespace
}  // namespace hawser::compat
