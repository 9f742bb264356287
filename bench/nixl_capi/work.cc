#include "work.h"

#include "cli/quantiles.h"

namespace nixl_bench {

Timing Samples::timing(std::uint32_t per) const {
  const hawser::cli::Quantiles found = hawser::cli::quantiles_of(all_);
  const double p50 = static_cast<double>(found.p50) / per, p99 = static_cast<double>(found.p99) / per;
  return {.value = p50, .p50 = p50, .p99 = p99, .count = found.count};
}

Work::Work(Side& side, const Task& task) : side_(side), task_(task), blocks_(task.shape, side.arena()) {
  if (blocks_.windows == 0) {
    throw Failure(std::to_string(task.shape.count) + " blocks of " + std::to_string(task.shape.size) +
                  " bytes do not fit into the arena");
  }
  blocks_.windows = std::min<std::size_t>(blocks_.windows, std::max<std::size_t>(kDescsMax / task.shape.count, 1));
  for (std::size_t i = 0; i < blocks_.windows; ++i) {
    const std::size_t first = i * task.shape.count;
    const auto local = std::span(blocks_.local).subspan(first, task.shape.count);
    const auto remote = std::span(blocks_.remote).subspan(first, task.shape.count);
    locals_.emplace_back(side.library(), side.base(), local, task.shape.size);
    remotes_.emplace_back(side.library(), task.remote_base, remote, task.shape.size);
  }
}

void Work::verify(std::uint64_t nonce) {
  if (task_.is_write) {
    for (std::size_t i = 0; i < task_.shape.count; ++i) {
      Pattern(nonce, blocks_.remote[i]).fill(side_.memory() + blocks_.local[i], task_.shape.size);
    }
  }
  once();
  if (task_.is_write) return;  // The target looks.
  for (std::size_t i = 0; i < task_.shape.count; ++i) {
    if (!Pattern(nonce, blocks_.remote[i]).holds(side_.memory() + blocks_.local[i], task_.shape.size)) {
      throw Failure("block " + std::to_string(i) + " was read wrong");
    }
  }
}

namespace {

class TransferWork final : public Work {
 public:
  using Work::Work;

  Timings run(double seconds) override {
    move(next());  // Not counted: the caches are somebody else's now.
    Samples samples;
    for (const Slice slice(seconds); slice.goes_on(samples.size());) samples.add(move(next()));
    return {{"", samples.timing()}};
  }
  void once() override { move(0); }

 private:
  std::size_t next() { return at_++ % windows(); }
  std::int64_t move(std::size_t window) {
    const nixl_capi_xfer_req_t request = create(window);
    const std::int64_t begin = now_ns();
    side().run(request);
    const std::int64_t took = now_ns() - begin;
    side().release(request);
    return took;
  }

  std::size_t at_ = 0;
};

class RepostWork final : public Work {
 public:
  RepostWork(Side& its, const Task& task) : Work(its, task) {
    for (std::size_t i = 0; i < kOutstanding; ++i) requests_.push_back(create(i % windows()));
  }
  ~RepostWork() override {
    for (const nixl_capi_xfer_req_t request : requests_) {
      (void)side().library().release_xfer_req(side().agent(), request);
      (void)side().library().destroy_xfer_req(request);
    }
  }

  Timings run(double seconds) override {
    std::vector<std::int64_t> posted(kOutstanding);
    std::vector<int> status(kOutstanding);
    Samples latencies;
    const auto post = [&](std::size_t i) {
      posted[i] = now_ns();
      status[i] = side().post(requests_[i]);
    };
    for (std::size_t i = 0; i < kOutstanding; ++i) post(i);
    const std::int64_t begin = now_ns();
    std::uint64_t done = 0;
    for (const Slice slice(seconds); slice.goes_on(done);) {
      for (std::size_t i = 0; i < kOutstanding; ++i) {
        if (status[i] == NIXL_CAPI_IN_PROG) status[i] = side().library().get_xfer_status(side().agent(), requests_[i]);
        if (status[i] == NIXL_CAPI_IN_PROG) continue;
        need(status[i], "a transfer");
        latencies.add(now_ns() - posted[i]);
        ++done;
        post(i);
      }
    }
    Timing timing = latencies.timing();
    timing.value = static_cast<double>(now_ns() - begin) / static_cast<double>(done);
    for (std::size_t i = 0; i < kOutstanding; ++i) side().finish(requests_[i], status[i]);
    return {{"", timing}};
  }
  void once() override { side().run(requests_[0]); }

 private:
  std::vector<nixl_capi_xfer_req_t> requests_;
};

class RoundTripWork final : public Work {
 public:
  RoundTripWork(Side& its, const Task& task) : Work(its, task) {
    const Library& library = side().library();
    NIXL_BENCH_NEED(library.create_opt_args(&options_));
    NIXL_BENCH_NEED(library.opt_args_set_notif_msg(options_, kPing.data(), kPing.size()));
    NIXL_BENCH_NEED(library.opt_args_set_has_notif(options_, true));
    request_ = create(0, options_);
  }
  ~RoundTripWork() override {
    (void)side().library().release_xfer_req(side().agent(), request_);
    (void)side().library().destroy_xfer_req(request_);
    (void)side().library().destroy_opt_args(options_);
  }

  Timings run(double seconds) override {
    once();
    Samples samples;
    for (const Slice slice(seconds); slice.goes_on(samples.size());) samples.add(round());
    return {{"", samples.timing()}};
  }
  void once() override { round(); }

 private:
  std::int64_t round() {
    const Library& library = side().library();
    const auto take = [&](const std::string& sender, std::string_view text) {
      if (sender != task().peer || text != kPong) throw Failure("an unexpected notification from " + sender);
    };
    Patience patience("a notification's answer");
    const std::int64_t begin = now_ns();
    int status = library.post_xfer_req(side().agent(), request_, options_);
    while (side().take_notifications(take) == 0) {
      if (status == NIXL_CAPI_IN_PROG) status = library.get_xfer_status(side().agent(), request_);
      patience.spin();
    }
    const std::int64_t took = now_ns() - begin;
    side().finish(request_, status);
    return took;
  }

  nixl_capi_opt_args_t options_ = nullptr;
  nixl_capi_xfer_req_t request_ = nullptr;
};

class RequestWork final : public Work {
 public:
  using Work::Work;

  Timings run(double seconds) override {
    once();
    creates_ = posts_ = releases_ = {};
    for (const Slice slice(seconds); slice.goes_on(creates_.size());) once();
    return {{"create", creates_.timing()}, {"post", posts_.timing()}, {"release", releases_.timing()}};
  }
  void once() override {
    const std::int64_t begin = now_ns();
    const nixl_capi_xfer_req_t request = create(0);
    const std::int64_t created = now_ns();
    const int status = side().post(request);
    const std::int64_t posted = now_ns();
    side().finish(request, status);
    const std::int64_t finished = now_ns();
    side().release(request);
    creates_.add(created - begin);
    posts_.add(posted - created);
    releases_.add(now_ns() - finished);
  }

 private:
  Samples creates_, posts_, releases_;
};

/// Lists that were prepared once, and requests that take all of their blocks in a random order.
class PreparedWork final : public Work {
 public:
  PreparedWork(Side& its, const Task& task) : Work(its, task), index_(task.shape.count) {
    std::iota(index_.begin(), index_.end(), 0);
    std::mt19937_64 dice(3);
    std::shuffle(index_.begin(), index_.end(), dice);
    local_ = prepare("", local(0));
    remote_ = prepare(task.peer, remote(0));
  }
  ~PreparedWork() override {
    (void)side().library().release_xfer_dlist_handle(side().agent(), local_);
    (void)side().library().release_xfer_dlist_handle(side().agent(), remote_);
  }

  Timings run(double seconds) override {
    Samples prepares, makes;
    for (const Slice slice(seconds); slice.goes_on(makes.size());) {
      const std::int64_t begin = now_ns();
      const nixl_capi_xfer_dlist_handle_t list = prepare(task().peer, remote(0));
      prepares.add(now_ns() - begin);
      NIXL_BENCH_NEED(side().library().release_xfer_dlist_handle(side().agent(), list));
      const std::int64_t made_begin = now_ns();
      const nixl_capi_xfer_req_t request = make();
      makes.add(now_ns() - made_begin);
      side().release(request);
    }
    const std::uint32_t per = task().shape.count;
    return {{"prep", prepares.timing(per)}, {"make", makes.timing(per)}};
  }
  void once() override {
    const nixl_capi_xfer_req_t request = make();
    side().run(request);
    side().release(request);
  }

 private:
  nixl_capi_xfer_dlist_handle_t prepare(const std::string& name, const DescList& list) const {
    nixl_capi_xfer_dlist_handle_t prepared = nullptr;
    NIXL_BENCH_NEED(side().library().prep_xfer_dlist(side().agent(), name.c_str(), list.get(), &prepared, nullptr));
    return prepared;
  }
  nixl_capi_xfer_req_t make() const {
    nixl_capi_xfer_req_t request = nullptr;
    NIXL_BENCH_NEED(side().library().make_xfer_req(side().agent(), op(), local_, index_.data(), index_.size(), remote_,
                                                   index_.data(), index_.size(), &request, nullptr));
    return request;
  }

  std::vector<int> index_;
  nixl_capi_xfer_dlist_handle_t local_ = nullptr;
  nixl_capi_xfer_dlist_handle_t remote_ = nullptr;
};

class PollWork final : public Work {
 public:
  PollWork(Side& its, const Task& task) : Work(its, task), request_(create(0)) { once(); }
  ~PollWork() override {
    (void)side().library().release_xfer_req(side().agent(), request_);
    (void)side().library().destroy_xfer_req(request_);
  }

  Timings run(double seconds) override {
    const Library& library = side().library();
    Samples statuses, notifications;
    for (const Slice slice(seconds); slice.goes_on(statuses.size());) {
      statuses.add(time_of([&] { return library.get_xfer_status(side().agent(), request_); }));
      notifications.add(time_of([&] { return library.get_notifs(side().agent(), side().map(), nullptr); }));
    }
    return {{"status", statuses.timing(kCalls)}, {"notifs", notifications.timing(kCalls)}};
  }
  void once() override { side().run(request_); }

 private:
  static constexpr std::uint32_t kCalls = 1000;

  template <typename Call>
  static std::int64_t time_of(const Call& call) {
    const std::int64_t begin = now_ns();
    for (std::uint32_t i = 0; i < kCalls; ++i) need(call(), "a poll");
    return now_ns() - begin;
  }

  nixl_capi_xfer_req_t request_;
};

}  // namespace

std::unique_ptr<Work> make_work(Side& side, const Task& task) {
  switch (task.kind) {
    case Kind::kTransfer:
      return std::make_unique<TransferWork>(side, task);
    case Kind::kRepost:
      return std::make_unique<RepostWork>(side, task);
    case Kind::kRoundTrip:
      return std::make_unique<RoundTripWork>(side, task);
    case Kind::kRequest:
      return std::make_unique<RequestWork>(side, task);
    case Kind::kPrepared:
      return std::make_unique<PreparedWork>(side, task);
    case Kind::kPoll:
      return std::make_unique<PollWork>(side, task);
    case Kind::kMetadata:
      break;
  }
  throw Failure("this kind of work is not the initiator's alone");
}

}  // namespace nixl_bench
