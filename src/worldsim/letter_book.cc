#include "worldsim/letter_book.h"

#include <algorithm>

#include <fmt/format.h>

namespace hawser::worldsim {

std::size_t LetterBook::post(std::optional<std::uint32_t> source, std::optional<std::uint64_t> tag) {
  posted_.push_back({.source = source, .tag = tag, .got = {}});
  return posted_.size() - 1;
}

std::string LetterBook::take(std::size_t receive, const Letter& letter) {
  Posted& posted = posted_[receive];
  if (posted.source.value_or(letter.from) != letter.from || posted.tag.value_or(letter.tag) != letter.tag) {
    return fmt::format("got letter {} of rank {} by tag {}, which it did not ask for", letter.number, letter.from,
                       letter.tag);
  }
  posted.got = letter;
  for (std::size_t other = 0; other < posted_.size(); ++other) {
    const std::optional<Letter>& its = posted_[other].got;
    if (other == receive || !its || its->from != letter.from || its->tag != letter.tag) continue;
    if (its->priority != letter.priority) continue;  // Classes may overtake one another.
    if (its->number == letter.number) {
      return fmt::format("letter {} of rank {} by tag {} came twice", letter.number, letter.from, letter.tag);
    }
    if ((other < receive) != (its->number < letter.number)) {
      return fmt::format("letters {} and {} of rank {} by tag {} have overtaken one another", its->number,
                         letter.number, letter.from, letter.tag);
    }
  }
  return "";
}

bool LetterBook::has(const Letter& letter) const {
  return std::ranges::any_of(posted_, [&](const Posted& posted) { return posted.got == letter; });
}

std::size_t LetterBook::lost() const {
  return static_cast<std::size_t>(std::ranges::count_if(posted_, [](const Posted& one) { return one.is_lost; }));
}

}  // namespace hawser::worldsim
