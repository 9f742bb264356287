// Two ports over a fabric and a network in memory: connecting, transfers, failures, mending. Rows of the conformance
// list for RDMA engines are named C<n>.

#include "backend/verbs/port.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <set>
#include <string>

#include "backend/verbs/memory/region_keys.h"
#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

TEST_F(VerbsPair, C1WriteAndRead) {
  start();
  connect();
  const Piece out[] = {{a->memory.data(), 4096, 100'000}};
  EXPECT_EQ(submit(Operation::kWrite, out, 1).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 100'000, b->memory.begin() + 4096));
  EXPECT_EQ(b->memory[4095], std::byte{0xee});
  EXPECT_EQ(b->memory[4096 + 100'000], std::byte{0xee});

  const Piece in[] = {{a->memory.data() + 1'000'000, 4096, 100'000}};
  EXPECT_EQ(submit(Operation::kRead, in, 2).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(2); }));
  EXPECT_TRUE(outcome(2).ok());
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 100'000, a->memory.begin() + 1'000'000));
}

TEST_F(VerbsPair, TellsWhatItWaitsFor) {
  start();
  std::set<std::string> waits;
  const auto look = [&] {
    a->port->describe([&](const Waiting& each) {
      waits.insert(std::string(each.who) + ": " + std::string(each.what) + " of " + std::string(each.peer));
    });
  };
  open();
  ASSERT_TRUE(run([&] {
    look();
    return a->up != nullptr && b->up != nullptr;
  }));
  EXPECT_TRUE(waits.contains("verbs, control: the hello of b"));
  EXPECT_TRUE(waits.contains("verbs: the device ports of b"));
  EXPECT_TRUE(waits.contains("verbs: queue pairs to be ready of b"));
  ASSERT_TRUE(run([&] {
    waits.clear();
    look();
    return waits.empty();
  }));
}

TEST_F(VerbsPair, EveryParameterOfAQueuePairReachesTheDevice) {
  auto read = read_verbs_options({{"mtu", "1024"},
                                  {"rd_atomic", "5"},
                                  {"timeout", "15"},
                                  {"retry", "3"},
                                  {"rnr_retry", "4"},
                                  {"min_rnr_timer", "17"},
                                  {"traffic_class", "104"},
                                  {"service_level", "3"},
                                  {"hop_limit", "9"},
                                  {"flow_label", "77"},
                                  {"pkey_index", "2"},
                                  {"send_depth", "100"},
                                  {"max_sge", "3"},
                                  {"inline", "32"}});
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  options = *read;
  start();
  connect();
  ASSERT_EQ(fabric.qps(), 2u);
  for (const std::uint32_t number : fabric.qp_numbers()) {
    const ibv_qp_init_attr made = fabric.made_with(number);
    EXPECT_EQ(made.qp_type, IBV_QPT_RC);
    EXPECT_EQ(made.cap.max_send_wr, 100u + options.pair.messages) << "requests of chunks, and sends of messages";
    EXPECT_EQ(made.cap.max_send_sge, 3u);
    EXPECT_EQ(made.cap.max_inline_data, 32u);
    const ibv_qp_attr attr = fabric.attributes(number);
    EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
    EXPECT_EQ(attr.max_rd_atomic, 5);
    EXPECT_EQ(attr.max_dest_rd_atomic, 5);
    EXPECT_EQ(attr.timeout, 15);
    EXPECT_EQ(attr.retry_cnt, 3);
    EXPECT_EQ(attr.rnr_retry, 4);
    EXPECT_EQ(attr.min_rnr_timer, 17);
    EXPECT_EQ(attr.pkey_index, 2);
    EXPECT_EQ(attr.ah_attr.sl, 3);
    EXPECT_EQ(attr.ah_attr.grh.traffic_class, 104);
    EXPECT_EQ(attr.ah_attr.grh.hop_limit, 9);
    EXPECT_EQ(attr.ah_attr.grh.flow_label, 77u);
  }
}

TEST_F(VerbsPair, NoPeerIsGivenTheDevicesAtomics) {  // The owner's CPU does them, and the two do not agree.
  start();
  connect();
  ASSERT_GT(fabric.memory.registered().size(), 0u);
  for (const auto& [key, mr] : fabric.memory.registered()) {
    EXPECT_EQ(fabric.memory.access_of(key) & IBV_ACCESS_REMOTE_ATOMIC, 0) << key;
  }
  for (const std::uint32_t number : fabric.qp_numbers()) {
    EXPECT_EQ(fabric.attributes(number).qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC, 0u);
  }
}

TEST_F(VerbsPair, C2SizesAndUnalignedStarts) {
  start();
  connect();
  std::uint64_t cookie = 0;
  for (const std::uint64_t size :
       {0u, 1u, 63u, 64u, 65u, 4095u, 4096u, 4097u, (1u << 20) - 1, 1u << 20, (1u << 20) + 1}) {
    std::fill(b->memory.begin(), b->memory.end(), std::byte{0xee});
    const Piece out[] = {{a->memory.data() + 3, 5, size}};
    ++cookie;
    ASSERT_EQ(submit(Operation::kWrite, out, cookie).taken, 1u);
    ASSERT_TRUE(run([&] { return is_done(cookie); })) << size;
    ASSERT_TRUE(outcome(cookie).ok()) << outcome(cookie).to_string();
    ASSERT_TRUE(std::equal(a->memory.begin() + 3, a->memory.begin() + 3 + static_cast<std::ptrdiff_t>(size),
                           b->memory.begin() + 5));
    ASSERT_EQ(b->memory[5 + size], std::byte{0xee});
    ASSERT_EQ(b->memory[4], std::byte{0xee});
  }
}

TEST_F(VerbsPair, C2OffsetsBeyond4GiBOfALargeRegion) {
  start();
  connect();
  constexpr std::uint64_t kSize = std::uint64_t{6} << 30, kAt = (std::uint64_t{4} << 30) - 10;
  constexpr std::size_t kBytes = 100'000;
  // Address space alone: pages come where the mock writes.
  void* at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  RegionEntry entry;
  entry.key = {7, 9};
  entry.base = static_cast<std::byte*>(at);
  entry.size = kSize;
  entry.rights = Rights::kReadWrite;
  const auto added = *b->table.add(std::move(entry));
  b->extra = *b->regions->add(*added);
  binding = bind(*added, b->extra);
  const Piece out[] = {{a->memory.data(), kAt, kBytes}};
  ASSERT_EQ(submit(Operation::kWrite, out, 1).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + kBytes, added->base + kAt));
  EXPECT_EQ(added->base[kAt - 1], std::byte{0});
  EXPECT_EQ(added->base[kAt + kBytes], std::byte{0});
  const Piece past[] = {{a->memory.data(), kSize - 10, 11}};
  ASSERT_EQ(submit(Operation::kWrite, past, 2).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(2); }));
  EXPECT_EQ(outcome(2).code(), Code::kDenied);
  b->regions->remove(added->index, added->generation);
  ::munmap(at, kSize);
}

TEST_F(VerbsPair, MessagesGoBothWays) {
  start();
  connect();
  const std::string head = "head,", body = "body";
  EXPECT_TRUE(to_b->send(Priority::kCritical, bytes(head), bytes(body)));
  EXPECT_TRUE(b->up->send(Priority::kCritical, bytes(head), {}));
  ASSERT_TRUE(run([&] { return !a->messages.empty() && !b->messages.empty(); }));
  EXPECT_EQ(b->messages[0], "head,body");
  EXPECT_EQ(a->messages[0], "head,");
}

TEST_F(VerbsPair, AdjacentRangesShareARequestAndABatchIsPostedByOneCall) {
  start();
  connect();
  std::vector<Piece> near, far;
  for (std::uint64_t i = 0; i < 8; ++i) {
    near.push_back({a->memory.data() + i * 1024, i * 512, 512});  // Apart here, together there: a gather list.
    far.push_back({a->memory.data() + i * 1024, 100'000 + i * 1024, 512});
  }
  fabric.posts = fabric.requests = 0;
  const Chunk both[] = {chunk(Operation::kWrite, near, 1), chunk(Operation::kWrite, far, 2)};
  EXPECT_EQ(to_b->submit(both, now).taken, 2u);
  EXPECT_EQ(fabric.posts, 1u);
  EXPECT_EQ(fabric.requests, 8 / options.pair.sge_max + 8);
  ASSERT_TRUE(run([&] { return is_done(1) && is_done(2); }));
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(
        std::equal(near[i].local, near[i].local + 512, b->memory.begin() + static_cast<std::ptrdiff_t>(i * 512)));
  }
}

TEST_F(VerbsPair, AReadScattersNoMoreThanTheDeviceCan) {
  fabric.device("mock0").max_sge_rd = 2;
  start();
  connect();
  std::fill_n(b->memory.begin(), 4096, std::byte{0x5a});
  std::vector<Piece> pieces;
  for (std::uint64_t i = 0; i < 8; ++i) pieces.push_back({a->memory.data() + i * 1024, i * 512, 512});
  fabric.requests = 0;
  ASSERT_EQ(submit(Operation::kRead, pieces, 1).taken, 1u);
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_EQ(fabric.requests, 4u);
  ASSERT_EQ(submit(Operation::kWrite, pieces, 2).taken, 1u);
  EXPECT_EQ(fabric.requests, 4u + 8 / options.pair.sge_max);
  ASSERT_TRUE(run([&] { return is_done(2); }));
}

TEST_F(VerbsPair, C7MoreThanTheQueueHoldsIsHeldBackAndThenGoes) {
  options.pair.send_depth = 16;
  start();
  connect();
  fabric.hold = true;
  std::vector<Piece> pieces(40);
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 40; ++i) {
    pieces[i] = {a->memory.data() + i * 8192, i * 8192, 4096};
    chunks.push_back(chunk(Operation::kWrite, {&pieces[i], 1}, i + 1));
  }
  std::size_t taken = to_b->submit(chunks, now).taken;
  EXPECT_EQ(taken, 16u);
  EXPECT_EQ(to_b->submit(std::span(chunks).subspan(taken), now).taken, 0u);
  while (taken < chunks.size()) {
    fabric.deliver();
    step();
    taken += to_b->submit(std::span(chunks).subspan(taken), now).taken;
  }
  fabric.deliver();
  ASSERT_TRUE(run([&] { return a->done.size() == 40; }));
  for (const auto& [cookie, status] : a->done) EXPECT_TRUE(status.ok()) << cookie;
}

TEST_F(VerbsPair, C7LaterBatchesReuseTheConnection) {
  start();
  connect();
  const std::vector<std::uint32_t> numbers = fabric.qp_numbers();
  const Piece out[] = {{a->memory.data(), 0, 4096}};
  for (std::uint64_t cookie = 1; cookie <= 50; ++cookie) {
    ASSERT_EQ(submit(Operation::kWrite, out, cookie).taken, 1u);
    ASSERT_TRUE(run([&] { return is_done(cookie); }));
    ASSERT_TRUE(outcome(cookie).ok()) << outcome(cookie).to_string();
  }
  EXPECT_EQ(fabric.qp_numbers(), numbers);
}

TEST_F(VerbsPair, AChunkThatNoQueueHoldsIsRefusedInsteadOfWaitingForEver) {
  options.pair.send_depth = 16;
  start();
  connect();
  std::vector<Piece> apart(17);
  for (std::uint64_t i = 0; i < apart.size(); ++i) apart[i] = {a->memory.data() + i * 8192, i * 8192, 64};
  ASSERT_EQ(submit(Operation::kWrite, apart, 1).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_EQ(outcome(1).code(), Code::kUnsupported);
  EXPECT_NE(outcome(1).to_string().find("send_depth"), std::string::npos) << outcome(1).to_string();
  ASSERT_EQ(submit(Operation::kWrite, std::span(apart).first(16), 2).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(2); }));
  EXPECT_TRUE(outcome(2).ok()) << outcome(2).to_string();
}

TEST_F(VerbsPair, C9OneBadOperationFailsAloneAndTheOthersArePostedAgain) {
  start();
  connect();
  const Piece good[] = {{a->memory.data(), 0, 4096}};
  const Piece after[] = {{a->memory.data() + 4096, 8192, 4096}};
  auto closed = bind(*region, b->extra);
  Chunk bad = chunk(Operation::kWrite, good, 2);
  RemoteRegionRef stale;
  stale.index = 50;
  stale.size = kMemory;
  stale.rights = Rights::kReadWrite;
  const RemoteKey wrong{.iova = reinterpret_cast<std::uint64_t>(b->memory.data()), .rkey = 1};
  const std::string keys = encode_region_keys({&wrong, 1}, {});
  stale.extra = keys;
  bad.target = *to_b->bind(stale);
  ASSERT_NE(closed, nullptr);
  fabric.hold = true;
  const Chunk all[] = {chunk(Operation::kWrite, good, 1), bad, chunk(Operation::kWrite, after, 3)};
  ASSERT_EQ(to_b->submit(all, now).taken, 3u);
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run_slow([&] { return a->done.size() == 3; }));
  EXPECT_TRUE(outcome(1).ok());
  EXPECT_EQ(outcome(2).code(), Code::kDenied);
  EXPECT_TRUE(outcome(3).ok()) << outcome(3).to_string();
  EXPECT_TRUE(std::equal(after[0].local, after[0].local + 4096, b->memory.begin() + 8192));
  EXPECT_TRUE(a->down.empty()) << "the path lives on";
}

TEST_F(VerbsPair, C6AQueuePairThatBreaksIsConnectedAgainAndNothingIsLost) {
  start();
  connect();
  fabric.hold = true;
  const Piece piece[] = {{a->memory.data(), 0, 65536}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  for (const std::uint32_t number : fabric.qp_numbers()) fabric.break_qp(number);
  fabric.hold = false;
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_TRUE(std::equal(piece[0].local, piece[0].local + 65536, b->memory.begin()));
  EXPECT_EQ(to_b->counters().epochs, 2u);
  EXPECT_EQ(a->ups, 1);
}

TEST_F(VerbsPair, C6EveryStepOfTheHandshakeMayFailOnce) {
  for (const char* call : {"create_qp", "modify_qp.init", "modify_qp.rtr", "modify_qp.rts", "post_send", "create_cq"}) {
    for (int nth = 1; nth <= 2; ++nth) {
      start();
      fabric.fail(call, EIO, nth);
      options.pair.inline_max = 0;
      Path* path = open();
      run_slow([&] { return a->up != nullptr || !a->down.empty(); });
      if (!a->down.empty()) {
        // One that never was up is given up at once, so that the agent tries another backend; the next attempt works.
        EXPECT_EQ(a->down[0].scope(), Scope::kPath) << a->down[0].to_string();
        a->port->release_path(path);
        path = open();
        ASSERT_TRUE(run_slow([&] { return a->up != nullptr; }))
            << call << " " << nth << " " << path->describe() << " " << a->down.back().to_string();
      }
      EXPECT_TRUE(run_slow([&] { return b->up != nullptr; })) << call << " " << nth;
      fabric.fail_no_more();  // Some calls are made once only.
      a.reset();
      b.reset();
      ASSERT_EQ(fabric.counts, MockCounts{}) << call << " " << nth;
    }
  }
}

/// Makes everything up to a port on device mock0; the first error.
Status open_a_port(MockFabric& fabric, stream::MemorySwitch& network, Side& own) {
  const VerbsOptions options;
  const DeviceInfo& info = *own.infos[0];
  const auto verbs = std::make_shared<MockVerbs>(fabric);
  auto nic = open_nic(verbs, {.device = &info, .port = &info.ports[0], .path = {}, .rank = 0}, options);
  if (!nic) return nic.error();
  const auto regions = std::make_shared<Regions>(std::vector{*nic}, RegionsOptions{});
  RegionEntry entry;
  entry.base = own.memory.data();
  entry.size = own.memory.size();
  entry.rights = Rights::kReadWrite;
  if (auto added = regions->add(entry); !added) return added.error();
  auto switched = std::make_unique<stream::MemoryNetwork>(network, "other");
  PortParts parts{.nics = {*nic}, .regions = regions, .control = {}, .network = switched.get()};
  parts.control =
      stream::make_port(*own.context, {.backend = "verbs", .connections = 1, .look_turns = 0}, std::move(switched));
  auto port = VerbsPort::open(*own.context, options, std::move(parts));
  return port ? Status() : port.error();
}

TEST_F(VerbsPair, EachCallOfOpeningMayFailAndLeavesNothing) {
  start();
  const MockCounts before = fabric.counts;
  ASSERT_TRUE(open_a_port(fabric, network, *a).ok());
  ASSERT_EQ(fabric.counts, before);
  for (const char* call :
       {"get_device_list", "open_device", "query_device", "query_port", "alloc_pd", "reg_mr", "create_comp_channel"}) {
    fabric.fail(call, ENOMEM);
    const Status status = open_a_port(fabric, network, *a);
    EXPECT_FALSE(fabric.fails(call)) << call << " was not made";
    fabric.fail_no_more();
    EXPECT_FALSE(status.ok()) << call << " failed, and nobody said so";
    EXPECT_NE(status.to_string().find("errno 12"), std::string::npos) << call << ": " << status.to_string();
    EXPECT_EQ(fabric.counts, before) << call << " leaked";
    const Status again = open_a_port(fabric, network, *a);
    EXPECT_TRUE(again.ok()) << call << ": " << again.to_string();
  }
}

TEST_F(VerbsPair, EachCallWhileDataFlowsMayFailOnce) {
  for (const char* call : {"post_send", "poll_cq", "req_notify_cq"}) {
    for (int nth = 1; nth <= 3; ++nth) {
      a.reset();
      b.reset();
      start();
      connect();
      fabric.fail(call, EIO, nth);
      std::vector<Piece> pieces(8);
      for (std::uint64_t i = 0; i < pieces.size(); ++i) {
        pieces[i] = {a->memory.data() + i * 8192, i * 8192, 4096};
        // While the queue pair is mended, nothing is taken.
        ASSERT_TRUE(run_slow([&] {
          return submit(Operation::kWrite, {&pieces[i], 1}, i + 1).taken == 1;
        })) << call
            << " " << nth;
        a->port->prepare_sleep();
        b->port->prepare_sleep();
        run_slow([&] { return is_done(i + 1); });
        EXPECT_TRUE(outcome(i + 1).ok()) << call << " " << nth << ": " << outcome(i + 1).to_string();
      }
      EXPECT_TRUE(a->down.empty()) << call << " " << nth;
      EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 4096, b->memory.begin())) << call << " " << nth;
      for (int left = 0; left < nth; ++left) EXPECT_FALSE(fabric.fails(call)) << call << " " << nth << " was not made";
      fabric.fail_no_more();
    }
  }
}

TEST_F(VerbsPair, EachCallOfEndingMayFailAndLeavesNothing) {
  for (const char* call : {"destroy_qp", "modify_qp.end", "destroy_cq", "destroy_comp_channel", "dereg_mr",
                           "dealloc_pd", "close_device", "get_cq_event"}) {
    for (int nth = 1; nth <= 3; ++nth) {
      start();
      connect();
      fabric.fail(call, EBUSY, nth);
      const Piece piece[] = {{a->memory.data(), 0, 4096}};
      ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
      ASSERT_TRUE(run_slow([&] { return is_done(1); }));
      fabric.break_qp(fabric.qp_numbers().front());  // A queue pair is ended and made anew,
      ASSERT_TRUE(run_slow([&] { return submit(Operation::kWrite, piece, 2).taken == 1; })) << call << " " << nth;
      ASSERT_TRUE(run_slow([&] { return is_done(2); })) << call << " " << nth;
      EXPECT_TRUE(outcome(2).ok()) << call << " " << nth << ": " << outcome(2).to_string();
      a->port->release_path(to_b);
      a.reset();  // and then all is ended.
      b.reset();
      fabric.fail_no_more();
      ASSERT_EQ(fabric.counts, MockCounts{}) << call << " " << nth;
    }
  }
}

TEST_F(VerbsPair, AQueuePairThatCannotBeEndedTouchesNothingAndItsSuccessorWorks) {
  start();
  connect();
  fabric.hold = true;
  const Piece in[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kRead, in, 1).taken, 1u);
  fabric.fail_always("destroy_qp", EBUSY);
  to_b->cancel(101);
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  const std::vector<std::byte> before(a->memory.begin(), a->memory.begin() + 4096);
  fabric.hold = false;
  fabric.deliver();
  EXPECT_TRUE(std::equal(before.begin(), before.end(), a->memory.begin()));
  const Piece out[] = {{a->memory.data(), 8192, 4096}};
  ASSERT_TRUE(run_slow([&] { return submit(Operation::kWrite, out, 2).taken == 1; }));
  ASSERT_TRUE(run_slow([&] { return is_done(2); }));
  EXPECT_TRUE(outcome(2).ok()) << outcome(2).to_string();
  EXPECT_GT(fabric.qps(), 2u);
  fabric.fail_no_more();
  EXPECT_TRUE(run_slow([&] { return fabric.qps() == 2; })) << "tried again by and by";
}

TEST_F(VerbsPair, MemoryThatTheDeviceDoesNotLetGoKeepsItsRegionFromClosing) {
  start();
  connect();
  const int before = fabric.counts.mrs;
  fabric.fail_always("dereg_mr", EBUSY);
  std::string holder;
  EXPECT_FALSE(b->port->region_quiet(region->index, region->generation, &holder));
  EXPECT_NE(holder.find("mock1"), std::string::npos) << holder;
  EXPECT_NE(holder.find("errno 16"), std::string::npos) << holder;
  EXPECT_EQ(fabric.counts.mrs, before);
  fabric.fail_no_more();
  EXPECT_TRUE(b->port->region_quiet(region->index, region->generation, &holder));
  EXPECT_EQ(fabric.counts.mrs, before - 1);
}

TEST_F(VerbsPair, MemoryThatTheDeviceDoesNotLetGoHoldsNoOtherRegion) {
  start();
  connect();
  std::vector<std::byte> elsewhere(4096);
  const auto add = [&](std::byte* base, std::size_t size) {
    RegionEntry entry;
    entry.key = {7, 10};
    entry.base = base;
    entry.size = size;
    entry.rights = Rights::kRead;
    auto added = *b->table.add(std::move(entry));
    EXPECT_TRUE(b->regions->add(*added).has_value());
    return added;
  };
  const auto other = add(elsewhere.data(), elsewhere.size());
  const auto within = add(b->memory.data() + 4096, 4096);
  std::string holder;
  fabric.fail_always("dereg_mr", EBUSY);
  EXPECT_FALSE(b->port->region_quiet(region->index, region->generation, &holder));
  fabric.fail_no_more();
  fabric.fail("dereg_mr", EBUSY, 2);  // Its own ends; the first's does not yet.
  EXPECT_TRUE(b->port->region_quiet(other->index, other->generation, &holder)) << holder;
  fabric.fail_always("dereg_mr", EBUSY);
  EXPECT_FALSE(b->port->region_quiet(within->index, within->generation, &holder)) << "its bytes are open yet";
  fabric.fail_no_more();
  EXPECT_TRUE(b->port->region_quiet(within->index, within->generation, &holder)) << holder;
  EXPECT_TRUE(b->port->region_quiet(region->index, region->generation, &holder)) << holder;
}

TEST_F(VerbsPair, ADeviceWhoseEventsCannotBeReadProvesItselfAnewOnce) {
  start();
  connect();
  run_slow([] { return false; }, kStep, 1000);
  fabric.fail_always("get_async_event", EIO);
  ASSERT_TRUE(run_slow([&] { return to_b->counters().queue_pairs.at(0).flow.reconnects > 0; }));
  run_slow([] { return false; }, std::chrono::milliseconds(1), 1000);
  EXPECT_LE(to_b->counters().queue_pairs.at(0).flow.reconnects, 2u) << "once by each end's device";
  EXPECT_EQ(a->port->devices().at(0).faults, 1u);
  fabric.fail_no_more();
  fabric.raise("mock0", IBV_EVENT_LID_CHANGE);
  EXPECT_TRUE(run_slow([&] { return a->port->devices().at(0).faults == 2; })) << "it listens again";
  EXPECT_TRUE(a->down.empty() && b->down.empty());
}

TEST_F(VerbsPair, C8AnErrorIsHeldUntilAllRequestsReported) {
  start();
  connect();
  fabric.hold = true;
  const Piece pieces[] = {{a->memory.data(), 0, 4096}, {a->memory.data() + 8192, 16384, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, pieces, 1).taken, 1u);
  fabric.deliver(1);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_FALSE(is_done(1));
  fabric.deliver();
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok());
}

TEST_F(VerbsPair, C10WhatIsCancelledIsQuietAndItsNeighboursGoOn) {
  start();
  connect();
  fabric.hold = true;
  const Piece one[] = {{a->memory.data(), 0, 4096}};
  const Piece two[] = {{a->memory.data(), 8192, 4096}};
  const Chunk both[] = {chunk(Operation::kRead, one, 1), chunk(Operation::kWrite, two, 2)};
  ASSERT_EQ(to_b->submit(both, now).taken, 2u);
  to_b->cancel(101);
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_EQ(outcome(1).code(), Code::kCancelled);
  fabric.hold = false;
  const std::vector<std::byte> before(a->memory.begin(), a->memory.begin() + 4096);
  fabric.deliver();
  ASSERT_TRUE(run_slow([&] { return is_done(2); }));
  EXPECT_TRUE(outcome(2).ok()) << outcome(2).to_string();
  EXPECT_TRUE(std::equal(before.begin(), before.end(), a->memory.begin())) << "read bytes landed after the end";
}

TEST_F(VerbsPair, C10WhatIsCancelledEndsAlsoWhenThePeersAgentIsStopped) {
  start();
  connect();
  fabric.hold = true;
  const Piece one[] = {{a->memory.data(), 0, 4096}};
  const Chunk write = chunk(Operation::kWrite, one, 1);
  ASSERT_EQ(to_b->submit({&write, 1}, now).taken, 1u);
  to_b->cancel(101);
  const Instant before = now;
  for (int i = 0; i < 5000 && !is_done(1); ++i) {  // `b` takes no turn.
    a->collect(now);
    now = now + std::chrono::milliseconds(1);
  }
  ASSERT_TRUE(is_done(1));
  EXPECT_EQ(outcome(1).code(), Code::kCancelled);
  EXPECT_LT(now - before, std::chrono::seconds(1));
  EXPECT_TRUE(a->down.empty());
  fabric.hold = false;
  fabric.deliver();
  EXPECT_EQ(b->memory[0], std::byte{0xee}) << "it landed after its end";
}

TEST_F(VerbsPair, C11AClosedRegionOpensNothing) {
  start();
  connect();
  b->table.close(region->index, region->generation);
  std::string holder;
  EXPECT_TRUE(b->port->region_quiet(region->index, region->generation, &holder));
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_EQ(outcome(1).code(), Code::kDenied) << outcome(1).to_string();
  EXPECT_EQ(b->memory[0], std::byte{0xee});
}

TEST_F(VerbsPair, RightsAndBoundsAreCheckedBeforeAnythingIsPosted) {
  start();
  connect();
  const auto read_only = b->add_region(Rights::kRead);
  binding = bind(*read_only, b->extra);
  fabric.requests = 0;
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  submit(Operation::kWrite, piece, 1);
  const Piece outside[] = {{a->memory.data(), kMemory - 100, 4096}};
  submit(Operation::kRead, outside, 2);
  ASSERT_TRUE(run([&] { return is_done(1) && is_done(2); }));
  EXPECT_EQ(outcome(1).code(), Code::kDenied);
  EXPECT_EQ(outcome(2).code(), Code::kDenied);
  EXPECT_EQ(fabric.requests, 0u);
}

TEST_F(VerbsPair, LocalMemoryThatIsNotRegisteredNeedsAnotherPath) {
  start();
  connect();
  std::vector<std::byte> other(4096);
  const Piece piece[] = {{other.data(), 0, 4096}};
  submit(Operation::kWrite, piece, 1);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_EQ(outcome(1).code(), Code::kUnsupported);
  EXPECT_EQ(outcome(1).scope(), Scope::kPath);
}

TEST_F(VerbsPair, ALinkThatStaysDownEndsThePathWithItsCauseAndNothingHangs) {
  start();
  connect();
  fabric.set_link("mock1", false);
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  ASSERT_TRUE(run_slow([&] {
    fabric.expire();
    return !a->down.empty();
  }));
  ASSERT_TRUE(is_done(1)) << "chunks end before their path";
  EXPECT_EQ(outcome(1).code(), Code::kDisconnected);
  EXPECT_EQ(outcome(1).scope(), Scope::kPath);
  EXPECT_NE(a->down[0].to_string().find("no answer"), std::string::npos) << a->down[0].to_string();
  a->port->release_path(to_b);
}

TEST_F(VerbsPair, ALinkThatComesBackIsUsedAgain) {
  start();
  connect();
  fabric.set_link("mock1", false);
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  run_slow([&] { return fabric.expire() > 0; });
  fabric.set_link("mock1", true);
  ASSERT_TRUE(run_slow([&] {
    fabric.expire();
    return is_done(1);
  }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_TRUE(a->down.empty());
}

TEST_F(VerbsPair, TwoRailsShareTheLoadAndOneCarriesOnAlone) {
  start({"mock0", "mock1"}, {"mock2", "mock3"});
  connect();
  ASSERT_TRUE(run([&] { return fabric.qps() == 4; }));
  run_slow([&] { return false; }, kStep, 200);
  fabric.hold = true;
  std::vector<Piece> pieces(8);
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 8; ++i) {
    pieces[i] = {a->memory.data() + i * 4096, i * 4096, 4096};
    chunks.push_back(chunk(Operation::kWrite, {&pieces[i], 1}, i + 1));
  }
  ASSERT_EQ(to_b->submit(chunks, now).taken, 8u);
  fabric.set_link("mock0", false);
  fabric.raise("mock0", IBV_EVENT_PORT_ERR);
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run_slow([&] {
    fabric.expire();
    return a->done.size() == 8;
  }));
  for (const auto& [cookie, status] : a->done) EXPECT_TRUE(status.ok()) << cookie << status.to_string();
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 8 * 4096, b->memory.begin()));
  EXPECT_TRUE(a->down.empty());
}

TEST_F(VerbsPair, AFasterRailCarriesMoreBytes) {
  fabric.device("mock0").mbit_per_s = fabric.device("mock2").mbit_per_s = 100'000;
  fabric.device("mock1").mbit_per_s = fabric.device("mock3").mbit_per_s = 25'000;
  start({"mock0", "mock1"}, {"mock2", "mock3"});
  connect();
  ASSERT_TRUE(run([&] { return to_b->counters().queue_pairs.at(1).state == "ready"; }));
  run_slow([&] { return false; }, kStep, 200);
  fabric.hold = true;
  std::vector<Piece> pieces(50);
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {a->memory.data() + i * 4096, i * 4096, 4096};
    ASSERT_EQ(submit(Operation::kWrite, {&pieces[i], 1}, i + 1).taken, 1u);
  }
  const auto pairs = to_b->counters().queue_pairs;
  EXPECT_EQ(pairs.at(0).bytes_in_flight_gauge, 40u * 4096) << "four times as fast";
  EXPECT_EQ(pairs.at(1).bytes_in_flight_gauge, 10u * 4096);
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return a->done.size() == pieces.size(); }));
}

TEST_F(VerbsPair, AFullQueuePairIsPassedOverForOneWithRoom) {
  options.pair.send_depth = 16;
  start({"mock0", "mock1"}, {"mock2", "mock3"});
  connect();
  ASSERT_TRUE(run([&] { return fabric.qps() == 4; }));
  run_slow([&] { return false; }, kStep, 200);
  fabric.hold = true;
  const Piece large[] = {{a->memory.data(), 0, 65536}};
  ASSERT_EQ(submit(Operation::kWrite, large, 1).taken, 1u);
  // The other one has the least under way, but no request is left after 16 of these.
  std::vector<Piece> pieces(24);
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = {a->memory.data() + 65536 + i * 128, 65536 + i * 128, 64};
    chunks.push_back(chunk(Operation::kWrite, {&pieces[i], 1}, i + 2));
  }
  EXPECT_EQ(to_b->submit(chunks, now).taken, 24u);
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return a->done.size() == 25; }));
  for (const auto& [cookie, status] : a->done) EXPECT_TRUE(status.ok()) << cookie << status.to_string();
}

TEST_F(VerbsPair, LostCompletionsAreNoticedAndTheWorkIsDoneAgain) {
  start();
  connect();
  fabric.hold = true;
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  fabric.overrun_all_cqs();
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
}

TEST_F(VerbsPair, APartlyPostedBatchComesBackWhole) {
  start();
  connect();
  std::vector<Piece> pieces(4);
  std::vector<Chunk> chunks;
  for (std::uint64_t i = 0; i < 4; ++i) {
    pieces[i] = {a->memory.data() + i * 4096, i * 4096, 4096};
    chunks.push_back(chunk(Operation::kWrite, {&pieces[i], 1}, i + 1));
  }
  fabric.fail("post_send", ENOMEM, 3);
  ASSERT_EQ(to_b->submit(chunks, now).taken, 4u);
  ASSERT_TRUE(run_slow([&] { return a->done.size() == 4; }));
  for (const auto& [cookie, status] : a->done) EXPECT_TRUE(status.ok()) << cookie << status.to_string();
}

TEST_F(VerbsPair, C12APeerThatIsGoneEndsEverything) {
  start();
  connect();
  fabric.hold = true;
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  b.reset();
  ASSERT_TRUE([&] {
    for (int i = 0; i < 20000; ++i) {
      a->collect(now);
      now = now + std::chrono::milliseconds(1);
      if (!a->down.empty()) return true;
    }
    return false;
  }());
  EXPECT_TRUE(is_done(1));
  EXPECT_FALSE(outcome(1).ok());
  a->port->release_path(to_b);
}

TEST_F(VerbsPair, WhatIsSupersededIsDeadAtThePeer) {
  start();
  connect();
  const std::size_t before = fabric.qps();
  const base::Id128 old = a->session;
  Path* fresh = open(old);
  ASSERT_TRUE(run([&] { return a->up == fresh; }));
  ASSERT_TRUE(run_slow([&] { return !b->down.empty() && fabric.qps() <= before + 1; }));
  EXPECT_FALSE(a->down.empty() && b->down.empty());
}

/// What malloc gave out and was not given back, bytes.
std::size_t heap_in_use() { return mallinfo2().uordblks; }

TEST_F(VerbsPair, C24AThousandConnectionsComeAndGoAndLeaveNothing) {
  start();
  constexpr int kRounds = 1000, kWarmUp = 50;
  std::size_t before = 0;
  for (int i = 0; i < kRounds; ++i) {
    a->up = b->up = nullptr;
    Path* path = open();
    ASSERT_TRUE(run([&] { return a->up != nullptr && b->up != nullptr; })) << i;
    // By turns either end drops it first.
    Side& first = i % 2 == 0 ? *a : *b;
    Side& second = i % 2 == 0 ? *b : *a;
    first.port->release_path(i % 2 == 0 ? path : b->up);
    ASSERT_TRUE(run([&] { return !second.down.empty(); })) << i;
    second.port->release_path(i % 2 == 0 ? b->up : path);
    second.down.clear();
    network.joined.clear();  // The test's own book of all streams there ever were.
    ASSERT_EQ(fabric.counts.qps, 0) << i;
    ASSERT_LE(fabric.counts.cqs, 2) << i;
    if (i + 1 == kWarmUp) before = heap_in_use();
  }
  // Where the heap does not tell (a sanitizer's), both are 0.
  EXPECT_LE(heap_in_use(), before + 16 * 1024) << "what grew from round " << kWarmUp << " to " << kRounds;
}

TEST_F(VerbsPair, AMessageThatLooksLikeAHandshakeIsTheAgents) {
  start();
  connect();
  // An agent's own message begins with 0, so a body that looks like a handshake is none.
  const std::string looks = "\x05";
  EXPECT_TRUE(to_b->send(Priority::kCritical, std::as_bytes(std::span(looks)), {}));
  ASSERT_TRUE(run([&] { return !b->messages.empty(); }));
  EXPECT_EQ(b->messages[0], looks);
}

}  // namespace
}  // namespace hawser::backend::verbs
