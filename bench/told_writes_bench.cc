// A stream of writes from one process into another's memory, by turns without and with a notification for each, which
// the target takes.
//
// usage: told_writes_bench BACKEND BYTES [ROUNDS [WINDOW]]
// Prints the medians of ROUNDS (9) rounds of 0.2 s in GB/s, with WINDOW (8) writes under way, and their ratio.

#include <hawser/hawser.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

#include "must.h"

namespace {

using Time = std::chrono::steady_clock;
constexpr std::uint32_t kBlocks = 16;
constexpr std::chrono::milliseconds kRound(200), kPatience(10'000);

/// What both processes see.
struct Board {
  std::atomic<bool> is_ready, is_over;
  char card[64 * 1024];
  std::size_t card_size;
};

hawser::Agent open_agent(const char* name, const char* backend) {
  return must(hawser::Agent::open({.name = name, .backends = {{backend, {}}}}));
}

void serve(Board& board, const char* backend, std::size_t bytes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  hawser::Agent agent = open_agent("target", backend);
  const hawser::Region region = must(agent.allocate({.name = "memory", .size = kBlocks * bytes}));
  const std::string card = must(agent.card());
  if (card.size() > sizeof(board.card)) std::exit(1);
  std::memcpy(board.card, card.data(), card.size());
  board.card_size = card.size();
  board.is_ready = true;
  hawser::Notification one;
  while (!board.is_over) {
    agent.poll();
    while (agent.take_notifications({&one, 1}) == 1) continue;
  }
}

class Writer {
 public:
  Writer(const Board& board, const char* backend, std::size_t bytes)
      : agent_(open_agent("writer", backend)),
        region_(must(agent_.allocate({.name = "memory", .size = kBlocks * bytes}))),
        peer_(must(agent_.add_peer(std::string_view(board.card, board.card_size)))) {
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      plans_.push_back(
          must(agent_.plan_write(peer_, region_.table(bytes), {&block, 1}, peer_.table("memory", bytes), {&block, 1})));
    }
  }
  /// One round, in GB/s.
  double run(const hawser::SubmitOptions& options, std::size_t window) {
    const Time::time_point begin = Time::now();
    std::uint64_t ended = 0;
    std::deque<hawser::Transfer> under_way;
    const auto end_one = [&] {
      const Time::time_point deadline = Time::now() + kPatience;
      while (!under_way.front().done() && Time::now() < deadline) agent_.poll();
      if (const hawser::Status status = under_way.front().wait(kPatience); !status.ok()) hawser::abort_on(status);
      under_way.pop_front();
      ++ended;
    };
    for (std::size_t next = 0; Time::now() - begin < kRound; next = (next + 1) % kBlocks) {
      while (under_way.size() >= window) end_one();
      under_way.push_back(must(plans_[next].submit(options)));
    }
    while (!under_way.empty()) end_one();
    const std::chrono::duration<double> seconds = Time::now() - begin;
    return static_cast<double>(ended * plans_.front().bytes()) / seconds.count() / 1e9;
  }

 private:
  hawser::Agent agent_;
  hawser::Region region_;
  hawser::Peer peer_;
  std::vector<hawser::Plan> plans_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: told_writes_bench BACKEND BYTES [ROUNDS [WINDOW]]\n");
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
  const std::size_t window = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 8;
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (bytes == 0 || rounds < 1 || window == 0 || memory == MAP_FAILED) return 2;
  Board& board = *static_cast<Board*>(memory);
  const pid_t child = ::fork();
  if (child == 0) {
    serve(board, argv[1], bytes);
    return 0;
  }
  for (const Time::time_point deadline = Time::now() + kPatience; !board.is_ready; ::poll(nullptr, 0, 1)) {
    if (::waitpid(child, nullptr, WNOHANG) != 0 || Time::now() > deadline) return 1;
  }
  Writer writer(board, argv[1], bytes);
  std::vector<double> plain, told;
  for (int round = 0; round < rounds; ++round) {
    plain.push_back(writer.run({}, window));
    told.push_back(writer.run({.notify = "written"}, window));
  }
  board.is_over = true;
  ::waitpid(child, nullptr, 0);
  std::printf("without %.2f GB/s, with a notification %.2f GB/s, ratio %.2f\n", median(plain), median(told),
              median(told) / median(plain));
  return 0;
}
