// What a message costs: two agents that one thread polls send messages one way, and there and back. No other thread
// and no sleep is in it, so it compares builds on a machine with other work.
//
// usage: message_bench BACKEND BYTES [ROUNDS]
// BYTES: of a message, at most 1 MiB. Prints the best and the median round's ns for each message one way, and for a
// message there and back. It fails when a message does not come within 30 s, never because it is slow.

#include <hawser/hawser.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "must.h"

namespace {

using Time = std::chrono::steady_clock;

constexpr std::uint32_t kChannel = 16;
constexpr std::uint32_t kCredit = 1024;
constexpr int kBatch = 16;
constexpr int kMessages = 16 * 1024;  ///< Each round sends so many.
constexpr std::chrono::seconds kPatience{30};

class Pair {
 public:
  explicit Pair(const std::string& backend)
      : one_(must(hawser::Agent::open({.name = "one", .backends = {{backend, {}}}}))),
        other_(must(hawser::Agent::open({.name = "other", .backends = {{backend, {}}}}))) {
    must(one_.open_channel(kChannel, kCredit));
    must(other_.open_channel(kChannel, kCredit));
    to_other_ = must(one_.add_peer(must(other_.card())));
    to_one_ = must(other_.add_peer(must(one_.card())));
    must(to_other_.reconnect());
    poll_until("the peers have no open channel",
               [&] { return to_other_.opened(kChannel) && to_one_.opened(kChannel); });
  }
  void one_way(std::span<const std::byte> bytes) {
    for (int sent = 0; sent < kMessages; sent += kBatch) {
      for (int i = 0; i < kBatch; ++i) send(to_other_, bytes);
      std::size_t got = 0;
      poll_until("messages did not come", [&] { return (got += other_.take_messages(kChannel, taken_)) == kBatch; });
    }
  }
  void there_and_back(std::span<const std::byte> bytes) {
    for (int i = 0; i < kMessages; ++i) {
      send(to_other_, bytes);
      await(other_);
      send(to_one_, bytes);
      await(one_);
    }
  }

 private:
  /// The clock is read seldom, for it would be part of what is measured.
  template <typename Done>
  void poll_until(const char* what, const Done& done) {
    constexpr int kLooks = 1 << 16;
    for (const auto end = Time::now() + kPatience; Time::now() < end;) {
      for (int look = 0; look < kLooks; ++look) {
        one_.poll();
        other_.poll();
        if (done()) return;
      }
    }
    hawser::abort_on(hawser::Status(hawser::Code::kTimedOut, std::string(what) + " within 30 s"));
  }
  void send(const hawser::Peer& peer, std::span<const std::byte> bytes) {
    hawser::Result<std::uint64_t> sent = peer.send(kChannel, bytes);
    if (sent) return;
    const auto is_over = [&] { return sent || sent.error().code() != hawser::Code::kBusy; };
    const auto tries = [&] {
      sent = peer.send(kChannel, bytes);
      return is_over();
    };
    if (!is_over()) poll_until("there was no room for a message", tries);
    must(std::move(sent));
  }
  void await(hawser::Agent& agent) {
    poll_until("a message did not come",
               [&] { return agent.take_messages(kChannel, std::span(taken_).first(1)) == 1; });
  }

  hawser::Agent one_, other_;
  hawser::Peer to_other_, to_one_;
  std::array<hawser::Message, kBatch> taken_;
};

template <typename Round>
void report(const char* what, int rounds, const Round& round) {
  std::vector<double> took;
  for (int i = 0; i <= rounds; ++i) {
    const auto begin = Time::now();
    round();
    const std::chrono::duration<double, std::nano> time = Time::now() - begin;
    if (i > 0) took.push_back(time.count() / kMessages);  // The first warms all up.
  }
  std::ranges::sort(took);
  std::printf("%-16s best %9.1f  p50 %9.1f ns\n", what, took.front(), took[took.size() / 2]);
}

}  // namespace

int main(int count, char** words) {
  constexpr long kBytesMax = 1 << 20;
  const long size = count > 2 ? std::atol(words[2]) : 0;
  if (size < 1 || size > kBytesMax) {
    std::fprintf(stderr, "usage: message_bench BACKEND BYTES [ROUNDS], with 1 to %ld BYTES\n", kBytesMax);
    return 2;
  }
  const int rounds = count > 3 ? std::max(std::atoi(words[3]), 1) : 10;
  const std::vector<std::byte> bytes(static_cast<std::size_t>(size), std::byte{7});
  Pair pair(words[1]);
  report("one way", rounds, [&] { pair.one_way(bytes); });
  report("there and back", rounds, [&] { pair.there_and_back(bytes); });
  return 0;
}
