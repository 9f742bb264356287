#pragma once

// NameRules: which agents an identity may speak for.
//
// By itself the identity spiffe://DOMAIN/PATH may speak for the agent PATH and for those whose names begin with PATH/,
// and for those that a DNS name of its certificate matches. Rules of the user add to that. In patterns * stands for any
// characters.
//
// Thread rule: values; const functions are pure.

#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "identity/holder.h"

namespace hawser::identity {

/// Whether `text` is what `pattern` says, where * stands for any characters, none included. Takes at most
/// pattern x text steps.
bool matches(std::string_view pattern, std::string_view text);

class NameRules {
 public:
  /// "IDENTITY=NAMES", several by commas: who has an identity of that pattern may speak for agents of that pattern.
  /// Errors: kInvalid.
  static Result<NameRules> parse(std::string_view text);

  NameRules() = default;
  bool allows(const Holder& holder, std::string_view agent) const;
  /// For errors: the names that `holder` may use, as patterns.
  std::string names_of(const Holder& holder) const;

 private:
  struct Rule {
    std::string identity, names;
  };
  std::vector<Rule> rules_;
};

}  // namespace hawser::identity
