#pragma once

// Strangers: connections that come to agents, prove nothing and stay: silent ones, halves of hellos, noise, whole
// hellos without a word after them, of this user and of another. An agent gives each of them up in time, and no peer
// notices any.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/theater.h"

namespace hawser::simulation {

class Strangers {
 public:
  explicit Strangers(Theater& theater);

  /// Now and then one more comes.
  void act();
  /// By then each that came is out.
  Instant all_out_by() const { return all_out_by_; }
  bool are_out();
  /// Complains of an agent that still keeps one.
  void check();

 private:
  enum class Kind : std::uint8_t { kSilent, kHalf, kNoise, kHello, kCount };
  struct Stranger {
    Life* at = nullptr;
    Kind kind = Kind::kSilent;
    std::unique_ptr<backend::stream::Stream> stream;
    std::string says;  ///< Streams refer to it.
    std::size_t said = 0;
    Instant came;
    bool is_out = false;
  };
  std::string words_of(Kind kind);
  void come(Life& life);
  static void move(Stranger& one);

  Theater& theater_;
  base::Rng rng_;
  std::unique_ptr<backend::stream::Network> kin_, other_user_;
  std::vector<std::unique_ptr<Stranger>> all_;  ///< At most kStrangersMax.
  Instant all_out_by_ = Instant::min();
};

}  // namespace hawser::simulation
