// EFA on a fabric in memory, where datagrams are done and end in an order of chance: row C20 of the conformance list
// for RDMA engines.

#include "backend/verbs/efa/efa.h"

#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <set>

#include "backend/verbs/devices/device_survey.h"
#include "backend/verbs/devices/device_test_tree.h"
#include "backend/verbs/efa/libefa.h"
#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

class Efa : public VerbsPair {
 protected:
  Efa() {
    for (const char* name : {"mock0", "mock1", "mock2", "mock3"}) {
      fabric.device(name).efa = true;
      fabric.device(name).max_sge = 1;
    }
  }
  std::uint64_t requests_of(Operation op, std::span<const Piece> each, std::uint64_t cookie) {
    const std::uint64_t before = fabric.requests;
    EXPECT_EQ(submit(op, each, cookie).taken, 1u);
    EXPECT_TRUE(run([&] { return is_done(cookie); }));
    EXPECT_TRUE(outcome(cookie).ok()) << outcome(cookie).to_string();
    return fabric.requests - before;
  }
  Submitted write(std::uint64_t cookie, std::uint64_t size, std::uint64_t at) {
    pieces.push_back({a->memory.data() + at, at, size});
    return submit(Operation::kWrite, {&pieces.back(), 1}, cookie);
  }
  bool same(std::uint64_t at, std::uint64_t size) {
    const auto from = a->memory.begin() + static_cast<std::ptrdiff_t>(at);
    return std::equal(from, from + static_cast<std::ptrdiff_t>(size),
                      b->memory.begin() + static_cast<std::ptrdiff_t>(at));
  }
  Result<std::shared_ptr<Nic>> open_device(const VerbsOptions& with, Transport transport = Transport::kEfa) {
    info.name = "mock0";
    info.transport = transport;
    PortInfo place;
    place.state = PortState::kActive;
    Gid gid;
    gid.bytes[0] = 0xfe;
    gid.bytes[1] = 0x80;
    gid.bytes[15] = 1;
    place.gids = {gid};
    info.ports = {place};
    return open_nic(std::make_shared<MockVerbs>(fabric), {.device = &info, .port = &info.ports[0], .path = {}}, with);
  }

  DeviceInfo info;
  std::deque<Piece> pieces;
};

// Chunking.

TEST_F(Efa, C20_WhatFitsIsOneRequest) {
  start();
  connect();
  const Piece out[] = {{a->memory.data(), 4096, 100'000}};
  EXPECT_EQ(requests_of(Operation::kWrite, out, 1), 1u);
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 100'000, b->memory.begin() + 4096));
  const Piece in[] = {{a->memory.data() + 1'000'000, 4096, 100'000}};
  EXPECT_EQ(requests_of(Operation::kRead, in, 2), 1u);
  EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 100'000, a->memory.begin() + 1'000'000));
}

TEST_F(Efa, C20_NoBytesAreOneRequest) {
  start();
  connect();
  EXPECT_EQ(requests_of(Operation::kWrite, {}, 1), 1u);
  EXPECT_EQ(requests_of(Operation::kRead, {}, 2), 1u);
}

TEST_F(Efa, C20_MoreThanTheDevicesRequestHoldsHasAShortTail) {
  fabric.device("mock0").efa_rdma_size = 64 << 10;
  start();
  connect();
  const Piece out[] = {{a->memory.data(), 0, (128 << 10) + 1}};
  EXPECT_EQ(requests_of(Operation::kWrite, out, 1), 3u);
  EXPECT_TRUE(same(0, (128 << 10) + 1));
  EXPECT_EQ(b->memory[(128 << 10) + 1], std::byte{0xee});
}

TEST_F(Efa, C20_AnExactMultipleHasNoEmptyTail) {
  fabric.device("mock0").efa_rdma_size = 64 << 10;
  start();
  connect();
  const Piece out[] = {{a->memory.data(), 0, 128 << 10}};
  EXPECT_EQ(requests_of(Operation::kWrite, out, 1), 2u);
  EXPECT_TRUE(same(0, 128 << 10));
}

TEST_F(Efa, C20_EachPieceIsARequestWhereTheDeviceTakesOne) {
  start();
  connect();
  const Piece out[] = {{a->memory.data(), 0, 100}, {a->memory.data() + 1000, 100, 100}};
  EXPECT_EQ(requests_of(Operation::kWrite, out, 1), 2u);
  EXPECT_TRUE(std::equal(a->memory.begin() + 1000, a->memory.begin() + 1100, b->memory.begin() + 100));
}

TEST_F(Efa, C20_SeveralPiecesAreOneRequestWhereTheDeviceTakesThem) {
  fabric.device("mock0").efa_sge = 2;
  fabric.device("mock0").max_sge = 2;
  start();
  connect();
  const Piece out[] = {{a->memory.data(), 0, 100}, {a->memory.data() + 1000, 100, 100}};
  EXPECT_EQ(requests_of(Operation::kWrite, out, 1), 1u);
  EXPECT_TRUE(std::equal(a->memory.begin() + 1000, a->memory.begin() + 1100, b->memory.begin() + 100));
}

// What queue pairs are made of.

TEST_F(Efa, C20_QueuePairsAreDatagramsWithinTheDevicesLimits) {
  fabric.device("mock0").efa_depth = fabric.device("mock1").efa_depth = 100;
  start();
  connect();
  ASSERT_EQ(fabric.qps(), 2u);
  for (const std::uint32_t number : fabric.qp_numbers()) {
    const ibv_qp_init_attr made = fabric.made_with(number);
    EXPECT_EQ(made.qp_type, IBV_QPT_DRIVER);
    EXPECT_EQ(made.cap.max_send_wr, 100u);
    EXPECT_EQ(made.cap.max_send_sge, 1u);
    EXPECT_EQ(made.cap.max_inline_data, 0u);
  }
}

TEST_F(Efa, C20_EachQueuePairHasItsKeyAndEachEpochANewOne) {
  options.pairs = 2;
  start();
  connect();
  std::set<std::uint32_t> keys;
  for (const std::uint32_t number : fabric.qp_numbers()) {
    const std::uint32_t key = fabric.attributes(number).qkey;
    EXPECT_NE(key, 0u);
    EXPECT_EQ(key & 0x80000000u, 0u);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 4u);
  fabric.break_qp(fabric.qp_numbers().front());
  fabric.raise("mock0", IBV_EVENT_PORT_ERR);  // Both pairs are made anew.
  ASSERT_TRUE(run_slow([&] { return fabric.qp_numbers().front() > 104 && fabric.qps() == 4; }));
  for (const std::uint32_t number : fabric.qp_numbers()) {
    EXPECT_TRUE(keys.insert(fabric.attributes(number).qkey).second) << "a key of an earlier epoch";
  }
}

TEST_F(Efa, C20_TheAddressHandleHasThePeersGidAndTheOwnIndex) {
  start();
  connect();
  write(1, 100, 0);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  for (const std::uint32_t number : fabric.qp_numbers()) {
    if (fabric.device_of(number) != "mock0") continue;
    const ibv_ah_attr used = fabric.address_used(number);
    EXPECT_EQ(used.is_global, 1);
    EXPECT_EQ(used.grh.sgid_index, 0);
    EXPECT_EQ(used.port_num, 1);
    EXPECT_EQ(used.grh.dgid.raw[0], 0xfe);
    EXPECT_EQ(used.grh.dgid.raw[15], fabric.device("mock1").last_byte);
  }
  EXPECT_EQ(fabric.counts.ahs, 2) << "one of each end";
}

TEST_F(Efa, C20_AWrongKeyIsDroppedWithoutAWordAndTheHandshakeEnds) {
  options.connect_timeout = std::chrono::milliseconds(100);
  start();
  connect();
  // The peer's queue pair is remade behind our back: what is posted to the old one ends by nobody.
  fabric.hold = true;
  write(1, 100, 0);
  step();
  for (const std::uint32_t number : fabric.qp_numbers()) {
    if (fabric.device_of(number) == "mock1") fabric.set_qkey(number, 77);
  }
  fabric.hold = false;
  fabric.deliver();
  EXPECT_EQ(fabric.dropped, 1u);
  EXPECT_FALSE(run([&] { return is_done(1); }, 100));
  EXPECT_NE(b->memory[0], a->memory[0]);
  to_b->cancel(101);
  ASSERT_TRUE(run_slow([&] { return is_done(1); })) << "the queue pair is broken, which ends it";
  EXPECT_EQ(outcome(1).code(), Code::kCancelled);
  ASSERT_TRUE(run_slow([&] { return write(2, 100, 0).taken == 1; }));
  ASSERT_TRUE(run_slow([&] { return is_done(2); }));
  EXPECT_TRUE(outcome(2).ok()) << "the next epoch has a key of its own";
}

// Order.

TEST_F(Efa, C20_AChunkEndsWhenAllOfItsRequestsDid) {
  fabric.device("mock0").efa_rdma_size = 4096;
  start();
  connect();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    fabric.order = base::Rng(seed);
    std::ranges::fill(b->memory, std::byte{0xee});
    fabric.hold = true;
    const std::uint64_t first = seed * 100;
    for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(write(first + i, 10 * 4096, i * 10 * 4096).taken, 1u);
    ASSERT_EQ(fabric.held(), 40u);
    for (int left = 40; left > 0; --left) {
      fabric.deliver(1);
      step();
      for (std::uint64_t i = 0; i < 4; ++i) {
        if (is_done(first + i)) {
          EXPECT_TRUE(same(i * 10 * 4096, 10 * 4096)) << "told before it was there, seed " << seed;
        }
      }
    }
    ASSERT_TRUE(run([&] { return is_done(first + 3) && is_done(first + 2) && is_done(first + 1) && is_done(first); }));
    fabric.hold = false;
  }
}

TEST_F(Efa, C20_MoreThanTheQueueHoldsGoesThroughInAnyOrder) {
  fabric.device("mock0").efa_depth = 16;
  fabric.device("mock0").efa_rdma_size = 1024;
  start();
  connect();
  std::uint64_t next = 0;
  constexpr std::uint64_t kCount = 200;
  ASSERT_TRUE(run([&] {
    while (next < kCount && write(next, 5000, next * 5000).taken == 1) ++next;
    return a->done.size() == kCount;
  }));
  for (const auto& [cookie, status] : a->done) EXPECT_TRUE(status.ok()) << cookie << status.to_string();
  EXPECT_TRUE(same(0, kCount * 5000));
}

TEST_F(Efa, C20_NoImmediatesAndNoMessagesByQueuePair) {
  start();
  connect();
  EXPECT_FALSE(to_b->carries_arrivals(1));
  EXPECT_FALSE(b->up->carries_arrivals(1));
  const Piece out[] = {{a->memory.data(), 0, 100}};
  Chunk covered = chunk(Operation::kWrite, out, 1);
  covered.covered = true;
  ASSERT_EQ(to_b->submit({&covered, 1}, now).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_EQ(a->done_uncounted, std::vector<std::uint64_t>{1}) << "its end has to be told by a message";
  EXPECT_TRUE(b->arrivals.empty());
  EXPECT_EQ(fabric.immediates, 0u);
  exchange(100, 4000, [](base::Rng&) {});
  EXPECT_EQ(by_queue_pair(to_b), 0u);
}

// Selection.

TEST_F(Efa, C20_ADeviceWithoutReadsOrWritesIsPassedOverWithAReason) {
  const std::pair<std::uint32_t, std::string> cases[] = {{0, "cannot read or write remote memory"},
                                                         {EFADV_DEVICE_ATTR_CAPS_RDMA_READ, "cannot write"},
                                                         {1u << 3, "cannot read"}};
  for (const auto& [caps, why] : cases) {
    fabric.device("mock0").efa_caps = caps;
    const auto nic = open_device(options);
    ASSERT_FALSE(nic.has_value());
    EXPECT_EQ(nic.error().code(), Code::kUnsupported);
    EXPECT_NE(nic.error().message().find(why), std::string::npos) << nic.error().to_string();
    EXPECT_NE(nic.error().message().find("mock0"), std::string::npos);
  }
}

TEST_F(Efa, C20_TheNextDeviceIsTakenForOneThatCannot) {
  fabric.device("mock0").efa_caps = EFADV_DEVICE_ATTR_CAPS_RDMA_READ;
  ASSERT_FALSE(open_device(options).has_value());  // Fills in `info`.
  std::vector<DeviceInfo> devices(2, info);
  devices[1].name = "mock1";
  const auto verbs = std::make_shared<MockVerbs>(fabric);
  auto nics = open_nics(verbs, devices, {}, &options);
  ASSERT_TRUE(nics.has_value()) << nics.error().to_string();
  ASSERT_EQ(nics->size(), 1u);
  EXPECT_EQ((*nics)[0]->device.name, "mock1");
  ASSERT_EQ(options.warnings.size(), 1u);
  EXPECT_NE(options.warnings[0].find("mock0 is not used"), std::string::npos) << options.warnings[0];
  EXPECT_NE(options.warnings[0].find("cannot write remote memory"), std::string::npos) << options.warnings[0];
  options.devices = {"mock0"};
  EXPECT_EQ(open_nics(verbs, devices, {}, &options).status().code(), Code::kUnsupported) << "who names it is told";
  options.devices.clear();
  options.queue_pair_type = QueuePairType::kRc;
  EXPECT_EQ(open_nics(verbs, devices, {}, &options).status().code(), Code::kUnsupported) << "none is left";
}

TEST_F(Efa, C20_WithoutLibefaItSaysSo) {
  fabric.fail("no_efa", ENOENT);
  const auto nic = open_device(options);
  ASSERT_FALSE(nic.has_value());
  EXPECT_NE(nic.error().to_string().find("libefa"), std::string::npos) << nic.error().to_string();
  fabric.fail("query_efa", EIO);
  EXPECT_FALSE(open_device(options).has_value());
  EXPECT_TRUE(open_device(options).has_value());
}

TEST_F(Efa, C20_AQueueOfNoDepthIsRefused) {
  fabric.device("mock0").efa_depth = 8;
  EXPECT_EQ(open_device(options).status().code(), Code::kUnsupported);
}

TEST_F(Efa, C20_TheTypeIsTheDevicesOrItIsNotUsed) {
  options.queue_pair_type = QueuePairType::kRc;
  const auto rc = open_device(options);
  ASSERT_FALSE(rc.has_value());
  EXPECT_NE(rc.error().message().find("queue_pair_type = rc"), std::string::npos) << rc.error().message();
  fabric.device("mock0").efa = false;
  EXPECT_TRUE(open_device(options, Transport::kInfiniBand).has_value());
  options.queue_pair_type = QueuePairType::kSrd;
  const auto srd = open_device(options, Transport::kInfiniBand);
  ASSERT_FALSE(srd.has_value());
  EXPECT_NE(srd.error().message().find("it is not EFA"), std::string::npos) << srd.error().message();
  fabric.device("mock0").efa = true;
  const auto nic = open_device(options);
  ASSERT_TRUE(nic.has_value()) << nic.error().to_string();
  EXPECT_TRUE((*nic)->is_srd());
  EXPECT_EQ((*nic)->address().best().index, 0u);
  EXPECT_EQ((*nic)->message_max, fabric.device("mock0").efa_rdma_size) << "not what the port tells of datagrams";
}

TEST_F(Efa, C20_AGidIndexThatIsNotThereIsAnError) {
  options.gid_index = 3;
  EXPECT_EQ(open_device(options).status().code(), Code::kNotFound);
}

TEST_F(Efa, C20_TheSurveyTellsWhatADeviceCannotDo) {
  const base::TestFolder folder;
  std::ofstream(folder.path("uverbs0")) << "";
  fabric.device("mock0").efa_caps = EFADV_DEVICE_ATTR_CAPS_RDMA_READ;
  ASSERT_FALSE(open_device(options).has_value());
  info.uverbs = "uverbs0";
  const auto verbs = std::make_shared<MockVerbs>(fabric);
  Survey survey = survey_devices({info}, verbs, {}, folder.path());
  ASSERT_TRUE(survey.devices.at(0).open.ok()) << survey.devices[0].open.to_string();
  EXPECT_NE(survey.devices[0].usable.at(0).message().find("cannot write remote memory"), std::string::npos);
  EXPECT_FALSE(survey.devices[0].usable[0].advice().empty());
  fabric.device("mock0").efa_caps = 0xf;
  survey = survey_devices({info}, verbs, {}, folder.path());
  EXPECT_TRUE(survey.devices.at(0).usable.at(0).ok());
}

TEST(EfaOptions, C20_TheTypeOfQueuePairsIsAnOption) {
  EXPECT_EQ(read_verbs_options({})->queue_pair_type, QueuePairType::kAuto);
  EXPECT_EQ(read_verbs_options({{"queue_pair_type", "srd"}})->queue_pair_type, QueuePairType::kSrd);
  const auto rc = read_verbs_options({{"queue_pair_type", "rc"}});
  EXPECT_EQ(rc->queue_pair_type, QueuePairType::kRc);
  EXPECT_EQ(rc->params.at("queue_pair_type"), "rc");
  const auto wrong = read_verbs_options({{"queue_pair_type", "ud"}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().to_string().find("srd"), std::string::npos) << wrong.error().to_string();
}

TEST(LibEfaReal, C20_WhatIsNotThereIsToldAndNothingElseNotices) {
  LibEfa library;
  const Status state = library.state();
  if (!state.ok()) {
    EXPECT_FALSE(state.advice().empty()) << state.to_string();
    EXPECT_EQ(library.query_efa(nullptr, nullptr), EOPNOTSUPP);
    EXPECT_EQ(library.create_srd(nullptr, nullptr), nullptr);
    GTEST_SKIP() << state.to_string();
  }
  SUCCEED() << "its calls need a device";
}

// One host.

TEST_F(Efa, C20_APeerOfTheSameHostIsRefusedWithAReason) {
  b_host = a_host;
  start();
  open();
  ASSERT_TRUE(run([&] { return !a->down.empty(); }));
  EXPECT_EQ(a->down[0].code(), Code::kUnsupported);
  EXPECT_NE(a->down[0].to_string().find("on this host"), std::string::npos) << a->down[0].to_string();
  EXPECT_EQ(a->ups, 0);
  EXPECT_EQ(fabric.qps(), 0u) << "nothing was tried that the device would drop";
}

TEST_F(Efa, C20_OnOneHostThatWasNotToldThePathDoesNotComeUp) {
  a_host = b_host = 0;
  fabric.device("mock0").host = fabric.device("mock1").host = "one";
  options.connect_timeout = std::chrono::milliseconds(100);
  start();
  open();
  ASSERT_TRUE(run_slow([&] { return !a->down.empty(); }));
  EXPECT_EQ(a->ups, 0);
  EXPECT_GT(fabric.dropped, 0u);
}

TEST_F(Efa, C20_ReliableConnectionsReachPeersOfTheSameHost) {
  for (const char* name : {"mock0", "mock1"}) fabric.device(name).efa = false;
  b_host = a_host;
  start();
  connect();
  write(1, 100, 0);
  ASSERT_TRUE(run([&] { return is_done(1); }));
}

TEST(EfaHost, C20_ABootHasOneName) {
  EXPECT_NE(this_boot(), 0u);
  EXPECT_EQ(this_boot(), this_boot());
}

// Failures.

TEST_F(Efa, C20_EachCallThatFailsWhileReconnectingIsTriedAgain) {
  start();
  connect();
  std::uint64_t cookie = 0;
  for (const char* call :
       {"create_srd", "extended", "modify_qp.init", "modify_qp.rtr", "modify_qp.rts", "create_ah", "wr_complete"}) {
    for (const int nth : {1, 2}) {  // The active end's, the passive end's.
      SCOPED_TRACE(call);
      ++cookie;
      const std::uint32_t last = fabric.qp_numbers().back();
      fabric.fail(call, EIO, nth);
      fabric.raise("mock0", IBV_EVENT_PORT_ERR);
      ASSERT_TRUE(run_slow([&] { return fabric.qps() == 2 && fabric.qp_numbers().front() > last; }));
      ASSERT_TRUE(run_slow([&] { return write(cookie, 100, cookie * 100).taken == 1; }));
      ASSERT_TRUE(run_slow([&] { return is_done(cookie); }));
      EXPECT_TRUE(outcome(cookie).ok()) << outcome(cookie).to_string();
      EXPECT_EQ(fabric.counts.ahs, 2);
    }
  }
  EXPECT_TRUE(a->down.empty());
}

TEST_F(Efa, C20_ACallThatAlwaysFailsEndsThePathWithIt) {
  for (const char* call : {"create_srd", "extended", "create_ah", "wr_complete"}) {
    SCOPED_TRACE(call);
    fabric.fail_always(call, ENOSPC);
    start();
    open();
    ASSERT_TRUE(run_slow([&] { return !a->down.empty(); }));
    EXPECT_NE(a->down[0].to_string().find("errno 28"), std::string::npos) << a->down[0].to_string();
    a.reset();
    b.reset();
    EXPECT_EQ(fabric.counts, MockCounts{});
    fabric.fail_no_more();
  }
}

TEST_F(Efa, C20_ABatchIsPostedWholeOrNotAtAll) {
  fabric.device("mock0").efa_rdma_size = 4096;
  start();
  connect();
  fabric.fail("wr_complete", ENOMEM);
  const std::uint64_t before = fabric.requests;
  ASSERT_EQ(write(1, 10 * 4096, 0).taken, 1u);
  EXPECT_EQ(fabric.requests, before) << "none of the ten";
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << "posted again in the next epoch";
  EXPECT_TRUE(same(0, 10 * 4096));
}

TEST_F(Efa, C20_WhatDatagramsCannotDoAbortsTheBatch) {
  const auto nic = open_device(options);
  ASSERT_TRUE(nic.has_value());
  const QueuePairOptions pair{.send_depth = 16, .sge_max = 1, .inline_max = 0};
  auto queues = CqPool::open((*nic)->domain, 32);
  ASSERT_TRUE(queues.has_value());
  auto object = QueuePairObject::of(**nic, pair);
  EXPECT_TRUE(object->is_unordered());
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = *(*queues)->lease();
  attr.cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  ibv_qp* const qp = object->create(&attr);
  ASSERT_NE(qp, nullptr);
  base::Rng rng(1);
  ASSERT_TRUE(object->init(qp, rng).ok());
  wire::QueuePairEndpoint own{.number = qp->qp_num, .mtu = 5};
  object->tell(&own);
  const Gid gid = (*nic)->address().best();
  wire::QueuePairEndpoint reliable = own;
  reliable.qkey = 0;
  EXPECT_EQ(object->join(qp, gid, reliable).code(), Code::kUnsupported);
  ASSERT_TRUE(object->join(qp, gid, own).ok());
  ibv_send_wr first{}, second{};
  first.opcode = IBV_WR_RDMA_WRITE;
  first.next = &second;
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND}) {
    second.opcode = opcode;
    EXPECT_EQ(object->post(qp, &first), EINVAL);
  }
  EXPECT_EQ(fabric.aborts, 3u);
  EXPECT_EQ(fabric.requests, 0u) << "the write before it neither";
  (*nic)->domain->verbs().destroy_qp(qp);
  object->release();
  (*queues)->give_back(attr.send_cq);
}

TEST_F(Efa, C20_AWrongRegionFailsItsOwnChunkAndTheOthersGoThrough) {
  start();
  connect();
  const std::vector<std::uint32_t> before = fabric.qp_numbers();
  fabric.hold = true;
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(write(i, 1000, i * 1000).taken, 1u);
  fabric.fail_next_with(IBV_WC_REM_ACCESS_ERR);
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run_slow([&] { return a->done.size() == 8; }));
  int denied = 0;
  for (const auto& [cookie, status] : a->done) {
    denied += status.code() == Code::kDenied;
    EXPECT_TRUE(status.ok() || status.code() == Code::kDenied) << status.to_string();
  }
  EXPECT_EQ(denied, 1);
  EXPECT_EQ(fabric.qp_numbers(), before) << "the queue pair goes on";
}

TEST_F(Efa, C20_ADeviceThatBreaksByAWrongRegionIsMended) {
  fabric.device("mock0").efa_rdma_size = 4096;
  start();
  connect();
  fabric.hold = true;
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(write(i, 5 * 4096, i * 5 * 4096).taken, 1u);
  fabric.fail_next_with(IBV_WC_REM_ACCESS_ERR);
  fabric.deliver(1);
  for (const std::uint32_t number : fabric.qp_numbers()) {
    if (fabric.device_of(number) == "mock0") fabric.break_qp(number);
  }
  fabric.hold = false;
  ASSERT_TRUE(run_slow([&] { return a->done.size() == 4; }));
  int denied = 0;
  for (const auto& [cookie, status] : a->done) {
    denied += status.code() == Code::kDenied;
    EXPECT_TRUE(status.ok() || status.code() == Code::kDenied) << status.to_string();
    if (status.ok()) {
      EXPECT_TRUE(same(cookie * 5 * 4096, 5 * 4096));
    }
  }
  EXPECT_EQ(denied, 1);
}

TEST_F(Efa, C20_AChunkWithOneWrongRequestFailsOnceAllOfItEnded) {
  fabric.device("mock0").efa_rdma_size = 4096;
  start();
  connect();
  fabric.hold = true;
  ASSERT_EQ(write(1, 5 * 4096, 0).taken, 1u);
  fabric.fail_next_with(IBV_WC_REM_ACCESS_ERR);
  for (int left = 5; left > 1; --left) {
    fabric.deliver(1);
    step();
    EXPECT_FALSE(is_done(1)) << "the device still reads its memory";
  }
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_EQ(outcome(1).code(), Code::kDenied);
  EXPECT_EQ(a->done.size(), 1u);
}

TEST_F(Efa, C20_WhatIsPostedWhenTheLinkGoesIsPostedAgainInTheNextEpoch) {
  fabric.device("mock0").efa_rdma_size = 4096;
  start();
  connect();
  const std::uint32_t before = fabric.qp_numbers().back();
  fabric.hold = true;
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(write(i, 5 * 4096, i * 5 * 4096).taken, 1u);
  fabric.deliver(7);  // Some of some of them.
  fabric.set_link("mock1", false);
  fabric.hold = false;
  fabric.deliver();
  fabric.expire();
  run([] { return false; }, 10);
  fabric.set_link("mock1", true);
  ASSERT_TRUE(run_slow([&] { return a->done.size() == 4; })) << to_b->describe();
  for (const auto& [cookie, status] : a->done) EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_TRUE(same(0, 20 * 4096));
  EXPECT_GT(fabric.qp_numbers().front(), before) << "both ends have new numbers";
}

TEST_F(Efa, C20_LateDatagramsOfAnEarlierEpochFindNobody) {
  start();
  connect();
  fabric.hold = true;
  ASSERT_EQ(write(1, 1000, 0).taken, 1u);
  to_b->cancel(101);
  const std::uint32_t before = fabric.qp_numbers().back();
  // It breaks its queue pair to end: nothing is delivered but the handshake's proof.
  ASSERT_TRUE(run_slow([&] {
    while (fabric.held() > 0 && fabric.qp_numbers().front() > before) fabric.deliver(1);
    return is_done(1);
  }));
  EXPECT_EQ(outcome(1).code(), Code::kCancelled);
  fabric.hold = false;
  fabric.deliver();
  EXPECT_EQ(b->memory[0], std::byte{0xee});
}

TEST_F(Efa, C20_DrainsAndLeavesNothingBehind) {
  for (const char* call : {"destroy_ah", "destroy_qp"}) {
    SCOPED_TRACE(call);
    start();
    connect();
    fabric.hold = true;
    for (std::uint64_t i = 0; i < 8; ++i) write(i, 1000, i * 1000);
    fabric.fail(call, EBUSY);
    a->port->release_path(to_b);
    fabric.hold = false;
    run([] { return false; }, 100);
    a.reset();
    b.reset();
    EXPECT_EQ(fabric.counts, MockCounts{}) << "ended later";
    fabric.fail_no_more();
  }
}

TEST_F(Efa, C20_ManyEpochsLeakNothing) {
  start();
  connect();
  const MockCounts before = fabric.counts;
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t last = fabric.qp_numbers().back();
    fabric.raise("mock0", IBV_EVENT_PORT_ERR);
    ASSERT_TRUE(run_slow([&] { return fabric.qps() == 2 && fabric.qp_numbers().front() > last; }));
    ASSERT_TRUE(run_slow([&] { return write(static_cast<std::uint64_t>(i), 100, 0).taken == 1; }));
    ASSERT_TRUE(run([&] { return is_done(static_cast<std::uint64_t>(i)); }));
    EXPECT_EQ(fabric.counts, before);
  }
}

}  // namespace
}  // namespace hawser::backend::verbs
