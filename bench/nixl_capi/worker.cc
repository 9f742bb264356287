#include "worker.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

#include "channel.h"
#include "cli/bench/cores.h"
#include "library.h"
#include "side.h"
#include "work.h"

namespace nixl_bench {
namespace {

constexpr std::uint64_t kRegionBytes = 4096;
/// For what the controller says next, and for handing an answer over. When it is gone, so are we.
constexpr std::chrono::hours kCommandPatience{1};

Json to_json(const Timing& timing) {
  return {{"value", timing.value}, {"p50", timing.p50}, {"p99", timing.p99}, {"count", timing.count}};
}

Json binary(std::vector<std::uint8_t> bytes) { return Json::binary(std::move(bytes)); }

std::int64_t timed(const std::function<void()>& call) {
  const std::int64_t begin = now_ns();
  call();
  return now_ns() - begin;
}

class Worker {
 public:
  explicit Worker(int socket) : channel_(socket) {}

  /// Until it is told to quit.
  void run() {
    for (Json command = next(); command.at("do") != "quit"; command = next()) {
      Json answer;
      try {
        answer = obey(command);
      } catch (const std::exception& error) {
        answer = {{"error", error.what()}};
      }
      if (must_quit_) break;
      channel_.send(answer, Deadline(kCommandPatience));
    }
    work_.reset();
    if (side_) side_->close();
  }

 private:
  Json next() { return channel_.receive(Deadline(kCommandPatience)); }
  Json obey(const Json& command) {
    const std::string what = command.at("do");
    if (what == "open") return open(command);
    if (what == "load") return {{"name", side_->load(command.at("md").get_binary())}};
    if (what == "prepare") return prepare(command);
    if (what == "run") return run_slice(command.at("seconds"));
    if (what == "verify") return verify(command.at("nonce"));
    if (what == "clear") return clear();
    if (what == "serve") return serve();
    if (what == "fill") return fill(command);
    if (what == "check") return check(command);
    if (what == "register") return register_regions(command.at("count"));
    if (what == "deregister") return deregister();
    if (what == "use") return use(command);
    if (what == "peek") return peek();
    throw Failure("unknown command " + what);
  }

  Json open(const Json& command) {
    // The library's own threads may run anywhere; this one stays where others are not.
    library_ = Library::open(command.at("library"));
    side_.emplace(*library_, Side::Setup{.name = command.at("name"),
                                         .progress_thread = command.at("thread"),
                                         .arena = command.at("arena"),
                                         .touch = command.at("touch")});
    if (command.at("core") >= 0) hawser::cli::bench::pin_to(command.at("core"));
    const bool has_memory = command.at("touch");
    return {{"pid", ::getpid()},
            {"base", side_->base()},
            {"md", binary(has_memory ? side_->metadata() : std::vector<std::uint8_t>())}};
  }

  Json prepare(const Json& command) {
    work_.reset();
    work_ = make_work(*side_, {.kind = command.at("kind"),
                               .shape = {.size = command.at("size"), .count = command.at("count")},
                               .is_write = command.at("write"),
                               .peer = command.at("peer"),
                               .remote_base = command.at("base")});
    return Json::object();
  }

  Json run_slice(double seconds) {
    Json rows = Json::object();
    for (const auto& [suffix, timing] : work_->run(seconds)) rows[suffix] = to_json(timing);
    return {{"rows", rows}};
  }

  Json verify(std::uint64_t nonce) {
    work_->verify(nonce);
    return Json::object();
  }

  Json clear() {
    work_.reset();
    return Json::object();
  }

  /// Lets the library move on and answers pings, until there is another command.
  Json serve() {
    const auto answer = [&](const std::string& sender, std::string_view text) {
      if (text == kPing) side_->notify(sender, kPong);
    };
    std::uint64_t answered = 0;
    for (std::uint32_t spins = 1; (spins & 255) != 0 || !channel_.ready(); ++spins) {
      answered += side_->take_notifications(answer);
    }
    must_quit_ = next().at("do") == "quit";  // Else it is "stop".
    return {{"answered", answered}};
  }

  Json fill(const Json& command) {
    const Shape shape{.size = command.at("size"), .count = command.at("count")};
    const Blocks blocks(shape, side_->arena());
    for (std::size_t i = 0; i < shape.count; ++i) {
      Pattern(command.at("nonce"), blocks.remote[i]).fill(side_->memory() + blocks.remote[i], shape.size);
    }
    return Json::object();
  }

  Json check(const Json& command) {
    const Shape shape{.size = command.at("size"), .count = command.at("count")};
    const Blocks blocks(shape, side_->arena());
    for (std::size_t i = 0; i < shape.count; ++i) {
      if (Pattern(command.at("nonce"), blocks.remote[i]).holds(side_->memory() + blocks.remote[i], shape.size))
        continue;
      throw Failure("block " + std::to_string(i) + " was written wrong");
    }
    return Json::object();
  }

  /// The target's part of the rows about metadata.
  Json register_regions(std::uint32_t count) {
    if (count * kRegionBytes > side_->arena()) throw Failure("the regions do not fit into the arena");
    regions_.emplace(*library_, side_->base(), kRegionBytes, count);
    const std::int64_t registered =
        timed([&] { NIXL_BENCH_NEED(library_->register_mem(side_->agent(), regions_->get(), nullptr)); });
    std::vector<std::uint8_t> metadata;
    const std::int64_t got = timed([&] { metadata = side_->metadata(); });
    return {{"register", registered}, {"getmd", got}, {"md", binary(std::move(metadata))}};
  }
  Json deregister() {
    const std::int64_t took =
        timed([&] { NIXL_BENCH_NEED(library_->deregister_mem(side_->agent(), regions_->get(), nullptr)); });
    regions_.reset();
    return {{"deregister", took}};
  }
  Json peek() const {
    std::uint64_t word = 0;
    std::memcpy(&word, side_->memory(), sizeof(word));
    return {{"word", word}};
  }
  /// The initiator's: loads, writes eight bytes to the first region, forgets.
  Json use(const Json& command) {
    const auto& metadata = command.at("md").get_binary();
    const RegList own(*library_, side_->base(), kRegionBytes, 1);
    NIXL_BENCH_NEED(library_->register_mem(side_->agent(), own.get(), nullptr));
    std::string name;
    const std::uint64_t word = command.at("nonce"), nowhere = 0;
    std::memcpy(side_->memory(), &word, sizeof(word));
    const std::int64_t begin = now_ns();
    name = side_->load(metadata);
    const std::int64_t loaded = now_ns();
    {
      const DescList local(*library_, side_->base(), {&nowhere, 1}, sizeof(word));
      const DescList remote(*library_, command.at("base"), {&nowhere, 1}, sizeof(word));
      const nixl_capi_xfer_req_t request = side_->create(NIXL_CAPI_XFER_OP_WRITE, local, remote, name);
      side_->run(request);
      side_->release(request);
    }
    const std::int64_t written = now_ns();
    const std::int64_t forgot =
        timed([&] { NIXL_BENCH_NEED(library_->invalidate_remote_md(side_->agent(), name.c_str())); });
    NIXL_BENCH_NEED(library_->deregister_mem(side_->agent(), own.get(), nullptr));
    return {{"load", loaded - begin}, {"first", written - begin}, {"invalidate", forgot}};
  }

  Channel channel_;
  std::optional<Library> library_;
  std::optional<Side> side_;
  std::optional<RegList> regions_;
  std::unique_ptr<Work> work_;
  bool must_quit_ = false;
};

}  // namespace

int run_worker(int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int status = 0;
  try {
    Worker(socket).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nixl_capi_bench: worker: %s\n", error.what());
    status = 1;
  }
  // Not exit(): the original crashes in a destructor of a library that it brings.
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace nixl_bench
