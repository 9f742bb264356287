#pragma once

// For tests: authorities in folders that go away, and what they issue.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "identity/authority.h"
#include "identity/credential.h"
#include "identity/trust.h"
#include "identity/unix_time.h"

namespace hawser::identity {

class TestAuthority {
 public:
  static constexpr std::int64_t kHour = 3600;

  explicit TestAuthority(const std::string& domain = "example.org")
      : authority_(std::make_unique<Authority>(
            *Authority::init(folder_.path("ca"), domain, unix_seconds() - kHour, unix_seconds() + 10 * kHour))) {}

  Authority& get() { return *authority_; }
  std::string folder() const { return folder_.path("ca"); }
  Issued issue(const std::string& name, std::vector<std::string> dns = {}) {
    return issue(name, std::move(dns), -kHour, kHour);
  }
  /// Times from now on, seconds.
  Issued issue(const std::string& name, std::vector<std::string> dns, std::int64_t begins, std::int64_t ends) {
    auto issued = authority_->issue(
        {.name = name, .dns = std::move(dns), .begins = unix_seconds() + begins, .ends = unix_seconds() + ends});
    EXPECT_TRUE(issued.has_value()) << issued.error().to_string();
    return *std::move(issued);
  }
  /// A folder as an agent uses it.
  std::string issue_to(const std::string& name, std::vector<std::string> dns = {}) {
    const std::string folder = folder_.path(name + "-" + std::to_string(++folders_));
    EXPECT_TRUE(issue(name, std::move(dns)).write(folder).ok());
    return folder;
  }
  std::shared_ptr<const Trust> trust() {
    const Issued any = issue("any");
    auto trust = Trust::make(any.authorities, any.revoked, authority_->domain());
    EXPECT_TRUE(trust.has_value()) << trust.error().to_string();
    return *trust;
  }

 private:
  base::TestFolder folder_;
  std::unique_ptr<Authority> authority_;
  int folders_ = 0;
};

inline std::shared_ptr<const Credential> credential_of(const Issued& issued) {
  auto credential = Credential::make(issued.certificate, issued.key);
  EXPECT_TRUE(credential.has_value()) << credential.error().to_string();
  return *credential;
}

}  // namespace hawser::identity
