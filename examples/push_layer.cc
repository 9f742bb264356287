// Two agents of one process: one pushes the blocks of a layer into the other's memory, chosen by two block tables, and
// tells it by a notification that comes after the bytes.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <vector>

#include <hawser/hawser.h>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;
constexpr std::size_t kBlocks = 256;

hawser::Status push(hawser::Agent& prefill, hawser::Agent& decode) {
  hawser::Result<hawser::Region> source = prefill.allocate({.name = "kv", .size = kBlocks * kBlockBytes});
  if (!source) return source.error();
  hawser::Result<hawser::Region> target = decode.allocate({.name = "kv", .size = kBlocks * kBlockBytes});
  if (!target) return target.error();

  // Cards travel however you like: a directory, an RPC of yours, or by hand as here.
  hawser::Result<std::string> card = decode.card();
  if (!card) return card.error();
  hawser::Result<hawser::Peer> peer = prefill.add_peer(*card);
  if (!peer) return peer.error();

  std::vector<std::uint32_t> from(100), to(100);
  std::iota(from.begin(), from.end(), 0);  // Blocks 0 to 99 here
  std::iota(to.rbegin(), to.rend(), 100);  // become blocks 199 down to 100 there.
  hawser::Result<hawser::Plan> plan =
      prefill.plan_write(*peer, source->table(kBlockBytes), from, peer->table("kv", kBlockBytes), to);
  if (!plan) return plan.error();

  source->bytes()[0] = std::byte{42};
  hawser::Result<hawser::Transfer> sent = plan->submit({.notify = "layer-0", .deadline = 5s});
  if (!sent) return sent.error();
  if (hawser::Status status = sent->wait(); !status.ok()) return status;

  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (std::chrono::steady_clock::now() < deadline) {
    decode.wait(10ms);
    if (std::optional<hawser::Notification> news = decode.take_notification()) {
      std::printf("%s from %.*s, first byte %d\n", news->text.c_str(), static_cast<int>(news->peer.name().size()),
                  news->peer.name().data(), static_cast<int>(target->bytes()[199 * kBlockBytes]));
      std::printf("%s", prefill.explain(*plan).c_str());
      return {};
    }
  }
  return hawser::Status(hawser::Code::kTimedOut, "no notification within five seconds");
}

}  // namespace

int main() {
  hawser::Result<hawser::Agent> prefill = hawser::Agent::open({.name = "prefill-0"});
  hawser::Result<hawser::Agent> decode = hawser::Agent::open({.name = "decode-0"});
  hawser::Result<hawser::Driver> driver = hawser::Driver::start();
  if (!prefill || !decode || !driver) {
    std::fprintf(stderr, "%s\n",
                 (!prefill  ? prefill.error()
                  : !decode ? decode.error()
                            : driver.error())
                     .to_string()
                     .c_str());
    return 1;
  }
  hawser::Status status = driver->attach(*decode);  // Its own thread answers; the prefill side runs in this one.
  if (status.ok()) status = push(*prefill, *decode);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  (void)driver->detach(*decode);
  return status.ok() ? 0 : 1;
}
