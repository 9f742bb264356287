#pragma once

// SpiffeId: the name of a workload, "spiffe://DOMAIN/PATH", as the SPIFFE ID standard (spiffe.io, "SPIFFE-ID", section
// 2) allows it. The domain is that of one authority.
//
// Thread rule: values and pure functions.

#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::identity {

inline constexpr std::size_t kSpiffeIdMax = 2048;  ///< Bytes of the whole text,
inline constexpr std::size_t kDomainMax = 255;     ///< and of the domain.

class SpiffeId {
 public:
  /// Errors: kInvalid, with what is wrong in `text`.
  static Result<SpiffeId> parse(std::string_view text);

  SpiffeId() = default;
  const std::string& text() const { return text_; }
  std::string_view domain() const {
    return text_.empty() ? std::string_view() : std::string_view(text_).substr(kScheme.size(), domain_size_);
  }
  /// Without the slash before it; empty: the identity of the domain itself, which no agent has.
  std::string_view path() const;

  friend bool operator==(const SpiffeId&, const SpiffeId&) = default;

 private:
  static constexpr std::string_view kScheme = "spiffe://";

  std::string text_;
  std::size_t domain_size_ = 0;
};

}  // namespace hawser::identity
