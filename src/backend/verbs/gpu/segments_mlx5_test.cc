#include "backend/verbs/gpu/segments_mlx5.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <vector>

#include "backend/verbs/gpu/gpu_driver_fake.h"
#include "backend/verbs/memory/registration_fake.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uintptr_t kBase = 0x7f0000000000;
constexpr std::size_t kStep = 2 << 20;

/// Time passes with each look at it.
class RunningClock final : public Clock {
 public:
  Instant now() const override { return at_ = at_ + std::chrono::milliseconds(1); }

 private:
  mutable Instant at_ = Instant::from_ns(1);
};

/// A device with a port, queues that are there in name, and completions that its Mlx5 puts into them.
class LoopFake final : public MemoryFake {
 public:
  LoopFake() { attributes.phys_port_cnt = 2; }

  std::vector<ibv_qp_attr> modified;
  std::deque<ibv_wc> completions;
  int active_port = 2;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  int gid_index = 1;  ///< The first that is no zero.
  bool broken_cq = false;

  int query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attr) override {
    if (fails()) return errno;
    *attr = {};
    attr->state = port == active_port ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attr->link_layer = link_layer;
    attr->lid = 17;
    attr->gid_tbl_len = 4;
    return 0;
  }
  int query_gid(ibv_context*, std::uint8_t, int index, ibv_gid* gid) override {
    if (fails()) return errno;
    *gid = {};
    gid->raw[15] = index >= gid_index ? 1 : 0;
    return 0;
  }
  ibv_cq* create_cq(ibv_context*, int, void*, ibv_comp_channel*, int) override {
    if (fails()) return nullptr;
    ++others;
    return new ibv_cq{};
  }
  int destroy_cq(ibv_cq* cq) override { return --others, delete cq, 0; }
  int destroy_qp(ibv_qp* qp) override { return --others, completions.clear(), delete qp, 0; }
  int modify_qp(ibv_qp*, ibv_qp_attr* attr, int) override {
    if (fails()) return errno;
    modified.push_back(*attr);
    return 0;
  }
  int poll_cq(ibv_cq*, int, ibv_wc* out) override {
    if (broken_cq || fails()) return -1;
    if (completions.empty()) return 0;
    *out = completions.front();
    completions.pop_front();
    return 1;
  }
};

class Mlx5Fake final : public Mlx5 {
 public:
  explicit Mlx5Fake(std::shared_ptr<LoopFake> fake) : fake_(std::move(fake)) {}
  bool is_mlx5 = true;
  bool completes = true;
  ibv_wc_status status = IBV_WC_SUCCESS;
  int qps = 0;
  int destroy_error = 0;
  std::vector<ibv_sge> posted;
  std::uint32_t access = 0;

  bool supports(ibv_device*) override { return is_mlx5; }
  ibv_qp* create_qp(ibv_pd*, const ibv_qp_init_attr& attr) override {
    if (fake_->fails()) return nullptr;
    EXPECT_GE(attr.cap.max_inline_data, 30 * sizeof(ibv_sge)) << "a whole list fits in one work request";
    ++fake_->others;
    auto* qp = new ibv_qp{};
    qp->qp_num = static_cast<std::uint32_t>(100 + ++qps);
    return qp;
  }
  mlx5dv_mkey* create_mkey(ibv_pd*, std::uint16_t) override {
    if (fake_->fails()) return nullptr;
    ++fake_->others;
    return new mlx5dv_mkey{.lkey = ++keys_, .rkey = keys_ + 1000};
  }
  int destroy_mkey(mlx5dv_mkey* key) override {
    return destroy_error != 0 ? destroy_error : (--fake_->others, delete key, 0);
  }
  int post_list(ibv_qp*, mlx5dv_mkey*, std::uint32_t flags, std::span<ibv_sge> list, std::uint64_t wr_id) override {
    if (fake_->fails()) return errno;
    posted.assign(list.begin(), list.end());
    access = flags;
    ibv_wc completion{};
    completion.wr_id = wr_id;
    completion.status = status;
    if (completes) fake_->completions.push_back(completion);
    return 0;
  }

 private:
  const std::shared_ptr<LoopFake> fake_;
  std::uint32_t keys_ = 0;
};

class Mlx5KeysTest : public testing::Test {
 protected:
  Mlx5KeysTest() : domain_(Domain::open(fake_, "mock0").value()) { gpu_.allocations = {{kBase, {2 * kStep, 1}}}; }
  ~Mlx5KeysTest() override {
    pieces_.clear();
    domain_.reset();
    EXPECT_EQ(fake_->alive(), 0);
    EXPECT_EQ(fake_->violations, 0);
  }
  std::unique_ptr<Mlx5Keys> keys() {
    for (const std::uintptr_t at : {kBase, kBase + kStep}) {
      pieces_.push_back(register_dmabuf(domain_, gpu_, {at, at + kStep}, {}).value());
    }
    return Mlx5Keys::open(domain_, mlx5_, clock_).value();
  }

  RunningClock clock_;
  GpuFake gpu_;
  std::shared_ptr<LoopFake> fake_ = std::make_shared<LoopFake>();
  std::shared_ptr<Mlx5Fake> mlx5_ = std::make_shared<Mlx5Fake>(fake_);
  std::shared_ptr<Domain> domain_;
  std::vector<std::shared_ptr<Registration>> pieces_;
};

TEST_F(Mlx5KeysTest, OneKeyCoversAllPiecesFromZeroOn) {
  const auto keys = this->keys();
  EXPECT_EQ(keys->pieces_max(), 30u);
  std::shared_ptr<Registration> key = keys->bind(pieces_, {.relaxed_ordering = true}).value();
  EXPECT_EQ(key->kind(), RegistrationKind::kIndirect);
  EXPECT_TRUE(key->covers(kBase, 2 * kStep));
  EXPECT_EQ(key->keys(kBase + kStep, 8).iova, kStep);
  ASSERT_EQ(mlx5_->posted.size(), 2u);
  EXPECT_EQ(mlx5_->posted[1].addr, kBase + kStep);
  EXPECT_EQ(mlx5_->posted[1].length, kStep);
  EXPECT_EQ(mlx5_->posted[1].lkey, pieces_[1]->lkey());
  EXPECT_EQ(mlx5_->access & IBV_ACCESS_RELAXED_ORDERING, 0u);
  EXPECT_NE(mlx5_->access & IBV_ACCESS_REMOTE_WRITE, 0u);
  pieces_.clear();
  EXPECT_EQ(fake_->memories, 2) << "the key holds its pieces";
  key.reset();
  EXPECT_EQ(fake_->memories, 0);
}

TEST_F(Mlx5KeysTest, TheQueuePairIsConnectedToItself) {
  const auto keys = this->keys();
  (void)keys->bind(pieces_, {}).value();
  (void)keys->bind(pieces_, {}).value();
  ASSERT_EQ(fake_->modified.size(), 3u) << "once for all keys";
  EXPECT_EQ(fake_->modified[0].port_num, 2) << "the active port";
  const ibv_qp_attr& ready = fake_->modified[1];
  EXPECT_EQ(ready.dest_qp_num, 101u);
  EXPECT_EQ(ready.ah_attr.is_global, 1);
  EXPECT_EQ(ready.ah_attr.grh.sgid_index, 1) << "the first address there is";
  EXPECT_EQ(fake_->modified[2].qp_state, IBV_QPS_RTS);
}

TEST_F(Mlx5KeysTest, OnInfiniBandItFindsItselfByLid) {
  fake_->link_layer = IBV_LINK_LAYER_INFINIBAND;
  const auto keys = this->keys();
  (void)keys->bind(pieces_, {}).value();
  EXPECT_EQ(fake_->modified[1].ah_attr.is_global, 0);
  EXPECT_EQ(fake_->modified[1].ah_attr.dlid, 17);
}

TEST_F(Mlx5KeysTest, WhatDoesNotCompleteHasADeadlineAndTheNextKeyWorks) {
  const auto keys = this->keys();
  mlx5_->completes = false;
  EXPECT_EQ(keys->bind(pieces_, {}).error().code(), Code::kTimedOut);
  mlx5_->completes = true;
  EXPECT_TRUE(keys->bind(pieces_, {}).has_value());
  EXPECT_EQ(mlx5_->qps, 2) << "the old queue pair may still have the list";
  mlx5_->status = IBV_WC_LOC_PROT_ERR;
  const Status refused = keys->bind(pieces_, {}).error();
  EXPECT_EQ(refused.code(), Code::kFailed);
  EXPECT_NE(refused.message().find("status 4"), std::string_view::npos);
  mlx5_->status = IBV_WC_SUCCESS;
  fake_->broken_cq = true;
  EXPECT_FALSE(keys->bind(pieces_, {})) << "a queue that cannot be polled is no success";
  fake_->broken_cq = false;
  EXPECT_TRUE(keys->bind(pieces_, {}).has_value());
}

TEST_F(Mlx5KeysTest, AKeyThatTheDeviceDoesNotLetGoIsKnownUntilItDoes) {
  const auto keys = this->keys();
  std::shared_ptr<Registration> key = keys->bind(pieces_, {}).value();
  mlx5_->destroy_error = EBUSY;
  key.reset();
  EXPECT_EQ(domain_->still_open(kBase + kStep, 1).code(), Code::kBusy) << "peers may have it";
  EXPECT_TRUE(domain_->still_open(kBase + 2 * kStep, kStep).ok());
  mlx5_->destroy_error = 0;
  domain_->sweep();
  EXPECT_TRUE(domain_->still_open(kBase + kStep, 1).ok());
}

TEST_F(Mlx5KeysTest, RefusesWhatCannotBeOneKey) {
  const auto keys = this->keys();
  EXPECT_EQ(keys->bind({}, {}).error().code(), Code::kInvalid);
  EXPECT_EQ(keys->bind({pieces_[1], pieces_[0]}, {}).error().code(), Code::kInvalid);
  EXPECT_EQ(keys->bind(std::vector(31, pieces_[0]), {}).error().code(), Code::kInvalid);
  fake_->active_port = 0;
  EXPECT_EQ(keys->bind(pieces_, {}).error().code(), Code::kUnsupported);
  mlx5_->is_mlx5 = false;
  EXPECT_EQ(Mlx5Keys::open(domain_, mlx5_, clock_).error().code(), Code::kUnsupported);
}

TEST(Mlx5Keys, FailureOfEachCallLeaksNothing) {
  const int calls = fail_each_call<LoopFake>([](const std::shared_ptr<LoopFake>& fake) {
    GpuFake gpu;
    RunningClock clock;
    gpu.allocations = {{kBase, {kStep, 1}}, {kBase + kStep, {kStep, 2}}};
    const Result<std::shared_ptr<Domain>> domain = Domain::open(fake, "mock0");
    if (!domain) return false;
    const auto keys = Mlx5Keys::open(*domain, std::make_shared<Mlx5Fake>(fake), clock).value();
    std::vector<Segment> segments = {{{kBase, kBase + kStep}}};
    SegmentTable table(
        *domain, gpu, [&] { return segments; }, keys.get(), Access{}, {.failure_ttl = Duration::zero()}, clock);
    const bool first = table.find(kBase, kStep).registration != nullptr;
    segments.front().range.end += kStep;
    const auto grown = table.find(kBase, 2 * kStep);
    EXPECT_NE(table.find(kBase, 2 * kStep).registration, nullptr) << "one failure is not for good";
    return first && grown.registration != nullptr;
  });
  EXPECT_EQ(calls, 4 + 2 + 2 + 2 + 2 + 3 + 3) << "domain, memory, ports, addresses, queues, states, key";
}

TEST(Mlx5, LibraryIsOpenedWhereItIs) {
  const Result<std::unique_ptr<Mlx5>> real = open_mlx5();
  if (!real) {
    EXPECT_EQ(real.error().code(), Code::kUnsupported);
    GTEST_SKIP() << real.error().to_string();
  }
}

}  // namespace
}  // namespace hawser::backend::verbs
