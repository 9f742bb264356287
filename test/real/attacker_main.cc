// attacker: a peer that was let in, by a card, and turns against its owner for some seconds. See attacks_test.py.
//
//   real_attacker CARD_FILE ATTACK SECONDS
//
// Prints one line: how often it tried, and how often it was let do what it must not. Exit status 1 where it was.

#include <sodium.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "../must.h"
#include "tcp_end.h"
#include "wire/card.h"
#include "wire/session.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kReach = 4096;
constexpr std::uint64_t kVeryMuch = 1ull << 62;

struct Tries {
  std::uint64_t made = 0, reached = 0;
};

class Attacker {
 public:
  Attacker(std::string card_bytes, const std::string& name)
      : bytes_(std::move(card_bytes)),
        end_(name, {}, Security::kDefault),
        card_(must(wire::decode_card(std::as_bytes(std::span(bytes_))))) {
    end_.greets = false;
    address_ = card_.backends[static_cast<std::size_t>(card_.find_backend("tcp"))].address;
  }

  /// Null: it is not let in now.
  Path* meet() {
    end_.up.clear(), end_.down.clear();
    auto path = end_.port->open_path({.peer = card_.name,
                                      .incarnation = card_.incarnation,
                                      .address = address_,
                                      .deadline = now() + seconds(3),
                                      .admission = card_.admission,
                                      .public_key = card_.public_key},
                                     now());
    if (!path) return nullptr;
    run(
        {&end_}, [&] { return !end_.up.empty() || !end_.down.empty(); }, seconds(3));
    if (end_.up.empty()) return nullptr;
    const std::string credits = wire::encode_credits({});
    std::array<std::byte, wire::kHeadMax> buffer;
    static_cast<void>((*path)->send(Priority::kRealtime, wire::encode(wire::Welcome{.session = 5}, buffer),
                                    std::as_bytes(std::span(credits))));
    return *path;
  }

  /// Reads the owner's region by a name and an address of its own making.
  void read(const RemoteRegionRef& ref, std::uint64_t offset, Tries& tries) {
    Path* const path = path_or_new();
    if (path == nullptr) return;
    auto binding = path->bind(ref);
    if (!binding) return;
    end_.done.clear();
    const Piece piece{end_.memory.data(), offset, kReach};
    const Chunk chunk = chunk_of(Operation::kRead, piece, *binding);
    ++tries.made;
    if (path->submit({&chunk, 1}, now()).taken != 1) return;
    run(
        {&end_}, [&] { return !end_.done.empty() || !end_.down.empty(); }, seconds(3));
    if (!end_.done.empty() && end_.done[0].ok()) ++tries.reached;
    path->unbind(ref.index, ref.generation);
  }
  /// Asks for as much as it may, and reads none of it.
  void read_nothing(Tries& tries) {
    Path* const path = path_or_new();
    if (path == nullptr) return;
    const Piece piece{end_.memory.data(), 0, 1 << 20};
    const Chunk chunk = chunk_of(Operation::kRead, piece, must(path->bind(owners())));
    for (int i = 0; i < 64; ++i) tries.made += path->submit({&chunk, 1}, now()).taken;
    for (int i = 0; i < 20; ++i) end_.turn(now());  // The requests leave.
    const Instant until = now() + milliseconds(200);
    while (now() < until) continue;
  }
  void open_more(Tries& tries) {
    ++tries.made;
    if (meet() != nullptr && ++open_ > 64) ++tries.reached;
  }
  void announce(Tries& tries) {
    Path* const path = path_or_new();
    if (path == nullptr) return;
    std::array<std::byte, wire::kHeadMax> buffer;
    const std::array<std::byte, 64> some = {};
    const wire::CardPart part{.place = {.link = Priority::kBulk, .seq = 1},
                              .revision = kVeryMuch,
                              .total = UINT32_MAX,
                              .offset = 0,
                              .bytes = some};
    ++tries.made;
    static_cast<void>(path->send(Priority::kRealtime, wire::encode(part, buffer), some));
    run(
        {&end_}, [&] { return !end_.down.empty(); }, milliseconds(200));
  }
  void flood(Tries& tries) {
    Path* const path = path_or_new();
    if (path == nullptr) return;
    const std::vector<std::byte> text(32 << 10, std::byte{0xff});
    for (int i = 0; i < 32; ++i) tries.made += path->send(Priority::kBulk, text, {}) ? 1 : 0;
    end_.turn(now());
  }

  /// A region of the card, with its key.
  RemoteRegionRef owners() const {
    const wire::CardRegion& first = card_.regions.at(0);
    RemoteRegionRef ref;
    ref.index = first.index;
    ref.generation = first.generation;
    ref.key = first.key;
    return ref;
  }
  std::uint64_t size() const { return card_.regions.at(0).size; }

 private:
  Path* path_or_new() {
    if (!end_.down.empty() || path_ == nullptr) path_ = meet();
    return path_;
  }

  std::string bytes_, address_;
  End end_;
  wire::Card card_;
  Path* path_ = nullptr;
  int open_ = 0;
};

using Attack = void (*)(Attacker&, Tries&);

const std::map<std::string, Attack> kAttacks = {
    {"guessed_key",
     [](Attacker& self, Tries& tries) {
       RemoteRegionRef ref = self.owners();
       ref.key = base::random_id128();
       self.read(ref, 0, tries);
     }},
    {"closed_region",
     [](Attacker& self, Tries& tries) {
       RemoteRegionRef ref = self.owners();
       ref.generation += 1 + static_cast<std::uint32_t>(tries.made % 7);
       self.read(ref, 0, tries);
     }},
    {"beyond_bounds", [](Attacker& self, Tries& tries) { self.read(self.owners(), self.size() - 8, tries); }},
    {"wraps_around", [](Attacker& self, Tries& tries) { self.read(self.owners(), UINT64_MAX - 10, tries); }},
    {"far_away", [](Attacker& self, Tries& tries) { self.read(self.owners(), kVeryMuch, tries); }},
    {"never_reads", [](Attacker& self, Tries& tries) { self.read_nothing(tries); }},
    {"sessions_without_end", [](Attacker& self, Tries& tries) { self.open_more(tries); }},
    {"announces_very_much", [](Attacker& self, Tries& tries) { self.announce(tries); }},
    {"message_flood", [](Attacker& self, Tries& tries) { self.flood(tries); }},
};

int main_of(const std::string& file, const std::string& name, double duration) {
  const auto attack = kAttacks.find(name);
  if (sodium_init() < 0 || attack == kAttacks.end()) return 2;
  std::ifstream in(file, std::ios::binary);
  // The name of the one before is taken until the owner has given that up.
  Attacker self(std::string(std::istreambuf_iterator<char>(in), {}), "attacker-" + name);
  Tries tries;
  const Instant until = now() + Duration(static_cast<std::int64_t>(duration * 1e9));
  while (now() < until) attack->second(self, tries);
  std::printf("%llu %llu\n", static_cast<unsigned long long>(tries.made),
              static_cast<unsigned long long>(tries.reached));
  return tries.reached == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hawser::backend

int main(int count, char** words) {
  return count == 4 ? hawser::backend::main_of(words[1], words[2], std::atof(words[3])) : 2;
}
