#include "identity/spiffe_id.h"

#include <algorithm>

#include "base/format.h"
#include "base/shown.h"

namespace hawser::identity {
namespace {

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_of_domain(char c) { return is_lower_or_digit(c) || c == '.' || c == '-' || c == '_'; }

bool is_of_path(char c) { return is_of_domain(c) || (c >= 'A' && c <= 'Z'); }

Status invalid(std::string_view text, std::string_view why) {
  return Status(Code::kInvalid, base::format("'{}' is no SPIFFE ID: {}", base::shown(text), why))
      .with_advice("it is spiffe://DOMAIN/PATH, such as spiffe://example.org/store");
}

/// What is wrong with a path that begins with a slash; empty: nothing.
std::string_view why_not_path(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // The slash.
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment.empty()) return "a part of its path is empty";
    if (segment == "." || segment == "..") return "a part of its path is . or ..";
    if (!std::ranges::all_of(segment, is_of_path)) return "its path has other characters than a-z, A-Z, 0-9, . - _";
    path.remove_prefix(segment.size());
  }
  return {};
}

}  // namespace

Result<SpiffeId> SpiffeId::parse(std::string_view text) {
  if (text.size() > kSpiffeIdMax) return invalid(text.substr(0, 40), "it has more than 2048 bytes");
  if (!text.starts_with(kScheme)) return invalid(text, "it does not begin with spiffe://");
  const std::string_view rest = text.substr(kScheme.size());
  const std::string_view domain = rest.substr(0, rest.find('/'));
  if (domain.empty()) return invalid(text, "it names no domain");
  if (domain.size() > kDomainMax) return invalid(text, "its domain has more than 255 bytes");
  if (!std::ranges::all_of(domain, is_of_domain)) {
    return invalid(text, "its domain has other characters than a-z, 0-9, . - _");
  }
  if (const std::string_view why = why_not_path(rest.substr(domain.size())); !why.empty()) return invalid(text, why);
  SpiffeId id;
  id.text_ = text;
  id.domain_size_ = domain.size();
  return id;
}

std::string_view SpiffeId::path() const {
  const std::size_t begin = kScheme.size() + domain_size_ + 1;
  return begin < text_.size() ? std::string_view(text_).substr(begin) : std::string_view();
}

}  // namespace hawser::identity
