#include "sim/strangers.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <sys/uio.h>

#include <fmt/format.h>

#include "sim/stranger_hello.h"
#include "wire/hello.h"

namespace hawser::simulation {
namespace {

constexpr std::size_t kStrangersMax = 24;
/// So long an agent keeps one at most: a stage of becoming proven takes 5 s, and there are two of them; a refusal
/// takes another second to be read. A process that was stopped gets around to it when it goes on.
constexpr Duration kKeptMax = std::chrono::milliseconds(11'500);
/// No node of the theater has such a number.
constexpr std::uint32_t kKinNumber = 1000, kOtherNumber = 1001;

constexpr std::array<std::string_view, 4> kNames{"said nothing", "said half a hello", "said nonsense",
                                                 "said a hello and nothing after it"};

}  // namespace

Strangers::Strangers(Theater& theater) : theater_(theater), rng_(theater.rng().fork()) {
  sim::Universe& universe = theater_.universe();
  universe.net.set_other_user(kOtherNumber);
  kin_ = universe.net.open(sim::Host::create(universe.world, "stranger", kKinNumber), "sim:stranger").value();
  other_user_ =
      universe.net.open(sim::Host::create(universe.world, "other user", kOtherNumber), "sim:other user").value();
}

void Strangers::act() {
  for (const auto& one : all_) move(*one);
  if (all_.size() >= kStrangersMax || !rng_.chance(0.2)) return;
  Life& life = theater_.at(rng_.below(theater_.nodes()));
  if (life.alive && !life.closing) come(life);
}

std::string Strangers::words_of(Kind kind) {
  if (kind == Kind::kSilent) return {};
  if (kind == Kind::kNoise) {
    std::string noise(1 + rng_.below(300), '\0');
    for (char& c : noise) c = static_cast<char>(rng_.below(256));
    return noise;
  }
  std::string bytes = wire::encode(stranger_hello(rng_, wire::Admission::kUser));
  if (kind == Kind::kHalf) bytes.resize(1 + rng_.below(bytes.size() - 1));
  return bytes;
}

void Strangers::come(Life& life) {
  auto one = std::make_unique<Stranger>();
  one->at = &life;
  one->kind = static_cast<Kind>(rng_.below(static_cast<std::uint64_t>(Kind::kCount)));
  one->says = words_of(one->kind);
  one->came = theater_.universe().world.now();
  auto& network = rng_.chance(0.5) ? kin_ : other_user_;
  Result<std::unique_ptr<backend::stream::Stream>> stream = network->connect("sim:" + life.name, {});
  if (!stream) return;
  one->stream = std::move(*stream);
  all_out_by_ = one->came + kKeptMax;
  all_.push_back(std::move(one));
}

/// Says what it has to say, hears whatever comes, and learns whether it was sent away.
void Strangers::move(Stranger& one) {
  // A process that ended keeps nobody, though who was connected to it may never hear of a loss of power.
  one.is_out = one.is_out || !one.at->alive;
  if (one.is_out || one.stream->state() == backend::stream::StreamState::kConnecting) return;
  if (one.said < one.says.size()) {
    const iovec part{.iov_base = one.says.data() + one.said, .iov_len = one.says.size() - one.said};
    one.said += one.stream->send({&part, 1}).bytes;
  }
  std::array<std::byte, 512> heard;
  const iovec part{.iov_base = heard.data(), .iov_len = heard.size()};
  const backend::stream::Moved moved = one.stream->receive({&part, 1});
  one.is_out = moved.closed || one.stream->state() == backend::stream::StreamState::kClosed;
}

bool Strangers::are_out() {
  for (const auto& one : all_) move(*one);
  return std::ranges::all_of(all_, [](const auto& one) { return one->is_out; });
}

void Strangers::check() {
  if (are_out()) return;
  const auto kept = std::ranges::find_if(all_, [](const auto& one) { return !one->is_out; });
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(theater_.universe().world.now() - (*kept)->came);
  theater_.judge().fail(*(*kept)->at, fmt::format("it keeps a stranger who {} for {} ms",
                                                  kNames[static_cast<std::size_t>((*kept)->kind)], ms.count()));
}

}  // namespace hawser::simulation
