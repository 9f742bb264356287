#pragma once

// LetterBook: what one rank of one world asked to receive and what it got. Of two receives that fit the same source and
// tag, and got letters of one class, the one that was posted first must have got the earlier letter; and no letter
// comes twice.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worldsim/letter.h"

namespace hawser::worldsim {

class LetterBook {
 public:
  /// A receive is posted. Without source or tag it takes any.
  std::size_t post(std::optional<std::uint32_t> source, std::optional<std::uint64_t> tag);
  /// It ended well, with this letter. What is wrong with that; empty: nothing.
  std::string take(std::size_t receive, const Letter& letter);
  /// It ended badly: a letter that was on its way to it may be lost.
  void give_up(std::size_t receive) { posted_[receive].is_lost = true; }
  /// Whether a letter of this source and tag with this number has come.
  bool has(const Letter& letter) const;
  std::size_t lost() const;

 private:
  struct Posted {
    std::optional<std::uint32_t> source;
    std::optional<std::uint64_t> tag;
    std::optional<Letter> got;
    bool is_lost = false;
  };
  std::vector<Posted> posted_;
};

}  // namespace hawser::worldsim
