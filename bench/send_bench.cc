// How long Peer::send keeps its caller: alone, and while another thread moves 256 MiB writes by the same agent. Two
// agents in one process, each with a driver.
//
// usage: send_bench BACKEND [SENDS]
// Prints the median, the 99th percentile and the longest call in us. SENDS: of each kind (2000). It fails when a
// message is lost or comes out of order, never by time.

#include <hawser/driver.h>
#include <hawser/hawser.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "must.h"

namespace {

using Time = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::seconds;

constexpr std::uint32_t kChannel = 16;
constexpr std::uint32_t kCredit = 1024;
constexpr std::size_t kBulk = 256u << 20;

hawser::Agent open(const std::string& name, const std::string& backend, hawser::Driver& driver) {
  hawser::Agent agent = must(hawser::Agent::open({.name = name, .backends = {{backend, {}}}, .driven = true}));
  must(driver.attach(agent));
  return agent;
}

/// Takes what comes, in order, until it is stopped.
class Reader {
 public:
  explicit Reader(hawser::Agent& agent) : agent_(agent), thread_([this] { run(); }) {}
  ~Reader() {
    stop_ = true;
    thread_.join();
  }
  std::uint64_t read() const { return next_; }

 private:
  void run() {
    while (!stop_) {
      while (const auto message = agent_.take_message(kChannel)) {
        std::uint64_t number = 0;
        std::memcpy(&number, message->bytes.data(), sizeof number);
        if (number != next_) {
          std::fprintf(stderr, "message %llu came where %llu was due\n", static_cast<unsigned long long>(number),
                       static_cast<unsigned long long>(next_.load()));
          std::exit(1);
        }
        ++next_;
      }
      static_cast<void>(agent_.wait(microseconds(500)));
    }
  }
  hawser::Agent& agent_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> next_{0};
  std::thread thread_;
};

/// Between two sends: 50 us.
void rest() {
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 50'000};
  ::ppoll(nullptr, 0, &kPause, nullptr);
}

void report(const char* what, std::vector<double> took) {
  std::ranges::sort(took);
  std::printf("%-16s p50 %8.2f  p99 %8.2f  max %8.2f us\n", what, took[took.size() / 2], took[took.size() * 99 / 100],
              took.back());
}

/// The numbers of messages go on from `first`.
std::vector<double> time_sends(const hawser::Peer& peer, std::uint64_t first, int count) {
  std::vector<double> took;
  for (int i = 0; i < count; ++i) {
    std::array<std::byte, 64> bytes{};
    const std::uint64_t number = first + static_cast<std::uint64_t>(i);
    std::memcpy(bytes.data(), &number, sizeof number);
    for (;;) {
      const auto begin = Time::now();
      const hawser::Status status = peer.send(kChannel, bytes).error();
      const std::chrono::duration<double, std::micro> time = Time::now() - begin;
      if (status.ok()) {
        took.push_back(time.count());
        break;
      }
      if (status.code() != hawser::Code::kBusy) hawser::abort_on(status);
      rest();
    }
    rest();
  }
  return took;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: send_bench BACKEND [SENDS]\n");
    return 2;
  }
  const std::string backend = words[1];
  const int sends = count > 2 ? std::atoi(words[2]) : 2000;
  hawser::Driver here = must(hawser::Driver::start({})), there = must(hawser::Driver::start({}));
  hawser::Agent one = open("one", backend, here), other = open("other", backend, there);
  must(other.open_channel(kChannel, kCredit));
  const hawser::Region source = must(one.allocate({.name = "source", .size = kBulk}));
  const hawser::Region target = must(other.allocate({.name = "target", .size = kBulk}));
  const hawser::Peer peer = must(one.add_peer(must(other.card())));
  must(peer.connect(seconds(5)));
  const hawser::LocalRange from = source.range(0, kBulk);
  const hawser::RemoteRange to = peer.range("target", 0, kBulk);
  hawser::Plan plan = must(one.plan_write(peer, {&from, 1}, {&to, 1}));
  const Reader reader(other);
  report("idle", time_sends(peer, 0, sends));

  std::atomic<bool> stop{false};
  std::atomic<int> writes{0};
  std::thread bulk([&] {
    for (; !stop; ++writes) must(must(plan.submit()).wait(seconds(60)));
  });
  report("beside bulk", time_sends(peer, static_cast<std::uint64_t>(sends), sends));
  stop = true;
  bulk.join();
  for (int i = 0; i < 100'000 && reader.read() < 2 * static_cast<std::uint64_t>(sends); ++i) {
    rest();
  }
  std::printf("%d writes of 256 MiB meanwhile, %llu messages came\n", writes.load(),
              static_cast<unsigned long long>(reader.read()));
  return reader.read() == 2 * static_cast<std::uint64_t>(sends) ? 0 : 1;
}
