// Three agents of one process: two workers take numbered pieces of work by an atomic counter in the third one's memory,
// and add up what they did by another. No piece is done twice, none is left out, and nobody serves a queue.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include <hawser/hawser.h>

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kPieces = 1000;
constexpr std::size_t kNext = 0, kSum = 8;  // Offsets of the two words.

hawser::Result<std::uint64_t> add(const hawser::Agent& agent, const hawser::RemoteRange& word, std::uint64_t number) {
  hawser::Result<hawser::AtomicOp> op = hawser::fetch_add(agent, word, number, {.deadline = 5s});
  if (!op) return op.error();
  // After a failure, buffer() of the status tells whether the word may have changed.
  if (hawser::Status status = op->wait(); !status.ok()) return status;
  return op->found();
}

hawser::Status work(const std::string& name, const std::string& card) {
  hawser::Result<hawser::Agent> agent = hawser::Agent::open({.name = name});
  if (!agent) return agent.error();
  hawser::Result<hawser::Driver> driver = hawser::Driver::start();
  if (!driver) return driver.error();
  if (hawser::Status status = driver->attach(*agent); !status.ok()) return status;
  hawser::Result<hawser::Peer> board = agent->add_peer(card);
  if (!board) return board.error();
  const hawser::RemoteRange next = board->range("board", kNext, 8), sum = board->range("board", kSum, 8);
  for (int done = 0;; ++done) {
    hawser::Result<std::uint64_t> piece = add(*agent, next, 1);
    if (!piece) return piece.error();
    if (*piece >= kPieces) {
      std::printf("%s did %d pieces\n", name.c_str(), done);
      return agent->close(5s);
    }
    if (hawser::Result<std::uint64_t> before = add(*agent, sum, *piece); !before) return before.error();
  }
}

hawser::Status run() {
  hawser::Result<hawser::Agent> board = hawser::Agent::open({.name = "board"});
  if (!board) return board.error();
  hawser::Result<hawser::Driver> driver = hawser::Driver::start();
  if (!driver) return driver.error();
  if (hawser::Status status = driver->attach(*board); !status.ok()) return status;
  hawser::Result<hawser::Region> words = board->allocate({.name = "board", .size = 16});  // Zeros.
  if (!words) return words.error();
  hawser::Result<std::string> card = board->card();
  if (!card) return card.error();
  hawser::Status one, two;
  std::thread other([&] { two = work("worker-2", *card); });
  one = work("worker-1", *card);
  other.join();
  if (!one.ok()) return one;
  if (!two.ok()) return two;
  hawser::Result<std::uint64_t> sum = board->read_signal(words->range(kSum, 8));
  if (!sum) return sum.error();
  std::printf("the sum of all pieces' numbers is %llu\n", static_cast<unsigned long long>(*sum));
  if (*sum == kPieces * (kPieces - 1) / 2) return {};
  return hawser::Status(hawser::Code::kCorrupt, "a piece was done twice, or not at all");
}

}  // namespace

int main() {
  const hawser::Status status = run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
