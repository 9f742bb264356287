// Requests that are looked at while they are posted again, and registrations that their agent withdrew.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/compat/status.h>

#include "agents.h"
#include "base/inside.h"
#include "compat/request.h"

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

XferDescList descs_of(std::vector<Desc> all) { return {MemType::kDram, std::span<const Desc>(all)}; }

// Layers without state, tensors without elements: NIXL's clients register them and list them like all others.
TEST(CompatRequest, WhatIsOfNoBytesIsRegisteredAndListedAndMovesNothing) {
  Side a("a", 8192), b("b", 8192);
  RegDescList mixed(MemType::kDram), none(MemType::kDram);
  for (const std::uint64_t len : {0, 4096, 0}) mixed.add(b.address() + 4096, len);
  none.add(0, 0);
  const auto registered = b.agent.register_memory(mixed);
  ASSERT_TRUE(registered) << registered.error().to_string();
  auto empty = b.agent.register_memory(none);
  ASSERT_TRUE(empty) << empty.error().to_string();
  EXPECT_TRUE(b.agent.get_local_partial_md(mixed).has_value());
  a.knows(b);
  b.knows(a);
  const std::uint64_t from = a.address(), to = b.address();
  const XferDescList ours = descs_of({{from, 16, 0}, {from, 0, 0}, {from + 32, 16, 0}, {5, 0, 7}});
  const XferDescList theirs = descs_of({{to, 16, 0}, {to + 8192, 0, 0}, {to + 32, 16, 0}, {to, 0, 0}});
  EXPECT_TRUE(a.agent.check_remote_metadata("b", &theirs));
  std::fill(a.memory.begin(), a.memory.end(), 'x');
  auto listed = a.agent.create_xfer_req(XferOp::kWrite, ours, theirs, "b").value();
  ASSERT_TRUE(a.run(listed).ok());
  EXPECT_EQ(std::count(b.memory.begin(), b.memory.end(), 'x'), 32);
  EXPECT_EQ(a.agent.get_xfer_telemetry(listed).value()->total_bytes, 32u);

  const PreparedList local = a.agent.prepare_xfer_dlist("", ours).value();
  const PreparedList remote = a.agent.prepare_xfer_dlist("b", theirs).value();
  const auto make = [&](std::vector<std::int32_t> l, std::vector<std::int32_t> r, const OptArgs* opt = nullptr) {
    return a.agent.make_xfer_req(XferOp::kWrite, local, l, remote, r, opt);
  };
  std::fill(b.memory.begin(), b.memory.end(), 'o');
  auto some = make({1, 2, 3}, {3, 2, 1}).value();
  ASSERT_TRUE(a.run(some).ok());
  EXPECT_EQ(std::count(b.memory.begin(), b.memory.end(), 'x'), 16);
  const Status wrong = make({1, 0}, {1, 3}).error();
  EXPECT_EQ(code_of(wrong), NixlCode::kInvalidParam);
  EXPECT_NE(wrong.to_string().find("position 1"), std::string::npos) << wrong.to_string();
  EXPECT_EQ(code_of(make({1, 4}, {1, 1}).error()), NixlCode::kInvalidParam);
  EXPECT_EQ(code_of(make({1, 1}, {1}).error()), NixlCode::kInvalidParam);
  EXPECT_EQ(
      code_of(a.agent.prepare_xfer_dlist("", MemType::kDram, std::vector<StridedDesc>{{from, 0, 0, 1, 1}}).error()),
      NixlCode::kInvalidParam);

  EXPECT_TRUE(empty->deregister().ok());
  EXPECT_EQ(code_of(b.agent.deregister_memory(none)), NixlCode::kNotFound);
}

TEST(CompatRequest, OneThatMovesNothingTellsItsPeerWhateverItIsToldToSay) {
  Side a("a", 8192), b("b", 8192);
  a.knows(b);
  b.knows(a);
  const XferDescList ours = descs_of({{a.address(), 0, 0}}), theirs = descs_of({{b.address(), 0, 0}});
  OptArgs opt;
  for (const std::size_t length : {0u, 5u, 300'000u}) {
    SCOPED_TRACE(length);
    opt.notification = std::string(length, 'n');
    auto request = a.agent.create_xfer_req(XferOp::kRead, ours, theirs, "b", &opt).value();
    EXPECT_EQ(code_of(a.agent.get_xfer_status(request).error()), NixlCode::kNotPosted);
    EXPECT_TRUE(a.agent.estimate_xfer_cost(request).has_value());
    for (int post = 0; post < 2; ++post) {
      NotificationMap all;
      ASSERT_TRUE(a.agent.post_xfer_req(request).has_value());
      ASSERT_TRUE(eventually([&] {
        const Result<bool> busy = a.agent.in_progress(request);
        EXPECT_TRUE(busy.status().ok()) << busy.status().to_string();
        return b.agent.get_notifications(all).ok() && !all["a"].empty() && busy && !*busy;
      }));
      EXPECT_EQ(all["a"], std::vector<std::string>{*opt.notification});
      EXPECT_EQ(a.agent.get_xfer_telemetry(request).value()->total_bytes, 0u);
    }
    EXPECT_TRUE(request.release().ok());
    EXPECT_FALSE(a.agent.post_xfer_req(request).has_value());
  }
  auto quiet_one = a.agent.create_xfer_req(XferOp::kWrite, ours, theirs, "b").value();
  EXPECT_TRUE(a.run(quiet_one).ok());
  EXPECT_TRUE(a.agent.invalidate_remote_md("b").ok());
  EXPECT_EQ(code_of(a.run(quiet_one)), NixlCode::kNotFound);
}

// Python asks this with its own lock held, so it must not wait for who releases a request, which may take seconds.
TEST(CompatRequest, IsLookedAtAtOnceOrNotAtAll) {
  Side a("a"), b("b");
  a.knows(b);
  auto request = a.agent.create_xfer_req(XferOp::kWrite, a.blocks(16), b.blocks(16), "b").value();
  EXPECT_EQ(a.agent.in_progress_at_once(request), std::nullopt) << "an error, which takes words";
  ASSERT_TRUE(a.run(request).ok());
  EXPECT_EQ(a.agent.in_progress_at_once(request), false);
  auto other = a.agent.create_xfer_req(XferOp::kWrite, a.blocks(16), b.blocks(16), "b").value();
  {
    const std::lock_guard held(core_of(other)->mutex);
    EXPECT_EQ(a.agent.in_progress_at_once(other), std::nullopt) << "who has the lock may keep it";
  }
  EXPECT_FALSE(a.agent.may_have_notifications());
  ASSERT_TRUE(b.agent.load_remote_md(a.agent.get_local_md().value()).has_value());
  ASSERT_TRUE(b.agent.send_notification("a", "hello").ok());
  EXPECT_TRUE(eventually([&] { return a.agent.may_have_notifications(); }));
  NotificationMap all;
  EXPECT_TRUE(a.agent.get_notifications(all).ok());
  EXPECT_EQ(all["a"].size() + all["b"].size(), 1u);
  AgentConfig by_its_caller = quiet();
  by_its_caller.progress_thread = false;
  const Side polled("polled", 4096, by_its_caller);
  EXPECT_TRUE(polled.agent.may_have_notifications()) << "looking moves it on";
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
  EXPECT_NE(late.error().to_string().find("load its newest metadata"), std::string::npos) << late.error().to_string();
}

// Clients without a progress thread may post and never look: what one turn can do is done by the post.
TEST(CompatRequest, APostMovesASmallTransferWithoutALookAtIt) {
  for (const char* const backends : {"shm", "tcp"}) {
    AgentConfig config = quiet({{"HAWSER_BACKENDS", backends}});
    config.progress_thread = false;
    Side a("a", 4096, config), b("b", 4096, config);
    a.knows(b);
    b.knows(a);
    auto request = a.agent.create_xfer_req(XferOp::kWrite, a.blocks(1), b.blocks(1), "b").value();
    NotificationMap none;
    std::atomic<bool> is_over{false};
    std::thread other([&] {  // Both sides are polled, and to connect takes both.
      while (!is_over) (void)b.agent.get_notifications(none);
    });
    EXPECT_TRUE(a.run(request).ok()) << backends;
    is_over = true;
    other.join();
    a.memory.assign(a.memory.size(), 'x');
    EXPECT_TRUE(a.agent.post_xfer_req(request)) << backends;
    EXPECT_TRUE(eventually([&] {
      (void)b.agent.get_notifications(none);
      return b.memory.back() == 'x';
    })) << backends;
    EXPECT_TRUE(eventually([&] {
      (void)b.agent.get_notifications(none);
      return !a.agent.in_progress(request).value_or(true);
    })) << backends;
  }
}

// Registrations wait for each other, and nobody else for them.
TEST(CompatRequest, ManyThreadsRegisterWhileOthersPrepareAndAsk) {
  Side a("a"), b("b");
  a.knows(b);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> registering;
  for (int i = 0; i < 3; ++i) {
    registering.emplace_back([&a] {
      const std::vector<char> memory(64 << 10);
      RegDescList pieces(MemType::kDram);
      const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
      for (std::size_t at = 0; at < memory.size(); at += 512) pieces.add(begin + at, 512);
      for (int turn = 0; turn < 20; ++turn) {
        auto registered = a.agent.register_memory(pieces);
        ASSERT_TRUE(registered) << registered.error().to_string();
        EXPECT_TRUE(a.agent.prepare_xfer_dlist("", blocks_of(memory)).error().code() == Code::kNotFound);
        EXPECT_TRUE(a.agent.get_local_partial_md(pieces));
        EXPECT_TRUE(registered->deregister().ok());
        EXPECT_FALSE(a.agent.get_local_partial_md(pieces)) << "something of it is booked still";
      }
    });
  }
  std::thread asking([&] {
    while (!is_over) {
      EXPECT_TRUE(a.agent.check_remote_metadata("b"));
      EXPECT_TRUE(a.agent.create_xfer_req(XferOp::kWrite, a.blocks(8), b.blocks(8), "b"));
    }
  });
  for (std::thread& each : registering) each.join();
  is_over = true;
  asking.join();
}

/// Buffers that are registered each by itself.
struct Buffers {
  Buffers(Side& side, std::size_t count, std::size_t bytes) : all(count, std::vector<char>(bytes)) {
    for (const auto& each : all) registrations.push_back(side.agent.register_memory(list_of(each)).value());
  }
  std::vector<std::vector<char>> all;
  std::vector<RegistrationHandle> registrations;
};

// Requests of one remote registration and few local ones are made in one look at their lists, the others in several.
TEST(CompatRequest, MovesListsOverManyRegistrationsWhicheverWayTheyAreMade) {
  constexpr std::size_t kBlock = 64, kBlocks = 8;
  for (const std::size_t locals : {1u, 3u, 16u, 17u, 40u}) {
    for (const std::size_t remotes : {1u, 2u, 5u}) {
      Side a("a"), b("b");
      Buffers ours(a, locals, kBlock * kBlocks), theirs(b, remotes, kBlock * 40 * kBlocks);
      a.knows(b);
      XferDescList from(MemType::kDram), to(MemType::kDram);
      for (std::size_t i = 0; i < locals * kBlocks; ++i) {
        std::vector<char>& source = ours.all[i % locals];
        std::vector<char>& target = theirs.all[i % remotes];
        const std::size_t at = i / locals * kBlock;
        std::fill_n(source.begin() + static_cast<std::ptrdiff_t>(at), kBlock, static_cast<char>(i + 1));
        from.add(reinterpret_cast<std::uintptr_t>(source.data()) + at, kBlock);
        to.add(reinterpret_cast<std::uintptr_t>(target.data()) + i * kBlock, kBlock);
      }
      auto request = a.agent.create_xfer_req(XferOp::kWrite, from, to, "b").value();
      ASSERT_TRUE(a.run(request).ok());
      for (std::size_t i = 0; i < locals * kBlocks; ++i) {
        ASSERT_EQ(theirs.all[i % remotes][i * kBlock], static_cast<char>(i + 1)) << locals << " " << remotes;
      }
      // The same with one that is wrong at the end is refused, and says which.
      from.add(from.begin()->addr, kBlock);
      to.add(1, kBlock);
      const auto refused = a.agent.create_xfer_req(XferOp::kWrite, from, to, "b");
      ASSERT_FALSE(refused);
      EXPECT_EQ(code_of(refused.error()), NixlCode::kNotFound);
      EXPECT_NE(refused.error().to_string().find("descriptor " + std::to_string(locals * kBlocks)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hawser::compat
