#include "identity/authority.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/test_folder.h"
#include "identity/test_authority.h"

namespace hawser::identity {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat facts = {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 07777;
}

TEST(Authority, KeepsItsKeyToItself) {
  TestAuthority authority;
  EXPECT_EQ(mode_of(authority.folder() + "/ca.key"), 0600u);
  EXPECT_EQ(mode_of(authority.folder()), 0700u);
  const std::string folder = authority.issue_to("store");
  EXPECT_EQ(mode_of(folder + "/tls.key"), 0600u);
  for (const auto& file : std::filesystem::directory_iterator(authority.folder() + "/issued")) {
    EXPECT_EQ(file.path().extension(), ".crt");  // No key of an agent stays with the authority.
  }
}

// Who has the key can be any agent, so a copy that lost its mode must not go unseen.
TEST(Authority, AKeyThatOthersMayReadIsRefused) {
  TestAuthority authority;
  const std::string key = authority.folder() + "/ca.key";
  for (const mode_t mode : {0644u, 0660u, 0606u}) {
    ASSERT_EQ(::chmod(key.c_str(), mode), 0);
    const Status status = Authority::open(authority.folder()).error();
    EXPECT_EQ(status.code(), Code::kDenied) << mode;
    EXPECT_EQ(status.advice().find("chmod 600 " + key), 0u) << status.advice();
  }
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  EXPECT_TRUE(Authority::open(authority.folder()).has_value());
}

TEST(Authority, AFolderThatIsThereKeepsItsMode) {
  TestAuthority authority;
  base::TestFolder folder;
  const std::string shared = folder.path("shared");
  ASSERT_EQ(::mkdir(shared.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);  // As /tmp.
  ASSERT_TRUE(authority.issue("store").write(shared).ok());
  EXPECT_EQ(mode_of(shared), 01777u);
  EXPECT_EQ(mode_of(shared + "/tls.key"), 0600u);
  ASSERT_TRUE(authority.issue("store").write(folder.path("new/below")).ok());
  EXPECT_EQ(mode_of(folder.path("new/below")), 0700u);
  EXPECT_EQ(authority.issue("store").write(shared + "/tls.key/below").code(), Code::kInvalid);
}

// Who may write the folder can put another key there, or another authority for its agents to trust.
TEST(Authority, AFolderThatOthersMayWriteIsRefused) {
  TestAuthority authority;
  base::TestFolder folder;
  const std::string shared = folder.path("shared");
  ASSERT_EQ(::mkdir(shared.c_str(), 0755), 0);
  const Issued issued = authority.issue("store");
  for (const mode_t mode : {0777u, 0770u, 0702u}) {
    ASSERT_EQ(::chmod(shared.c_str(), mode), 0);
    ASSERT_EQ(::chmod(authority.folder().c_str(), mode), 0);
    EXPECT_EQ(Authority::open(authority.folder()).error().code(), Code::kDenied);
    ASSERT_EQ(::chmod(authority.folder().c_str(), 0700), 0);
    for (const Status& status :
         {issued.write(shared), authority.get().copy_revoked(shared),
          Authority::init(shared, "example.org", unix_seconds(), unix_seconds() + 100).error()}) {
      EXPECT_EQ(status.code(), Code::kDenied) << mode;
      EXPECT_EQ(status.advice(), "chmod go-w " + shared);
    }
    EXPECT_TRUE(std::filesystem::is_empty(shared));
  }
}

// `hawser ca init` makes "hawser-ca" where it is called.
TEST(Authority, AFolderWithoutAPathIsMadeWhereTheProcessIs) {
  base::TestFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const auto made = Authority::init("ca", "example.org", unix_seconds(), unix_seconds() + 100);
  std::filesystem::current_path(before);
  EXPECT_TRUE(made.has_value()) << made.error().to_string();
  EXPECT_TRUE(std::filesystem::exists(folder.path("ca/ca.key")));
}

TEST(Authority, TwoOfAFolderAreOne) {
  base::TestFolder folder;
  ASSERT_TRUE(Authority::init(folder.path("ca"), "example.org", unix_seconds(), unix_seconds() + 100).has_value());
  const auto again = Authority::init(folder.path("ca"), "example.org", unix_seconds(), unix_seconds() + 100);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code(), Code::kInvalid);
  EXPECT_EQ(Authority::open(folder.path("nowhere")).error().code(), Code::kNotFound);
  EXPECT_EQ(Authority::init(folder.path("b"), "Example.org", 0, 1).error().code(), Code::kInvalid);
  EXPECT_EQ(Authority::init(folder.path("b"), "example.org/x", 0, 1).error().code(), Code::kInvalid);
}

TEST(Authority, OpensAgainAndGoesOn) {
  TestAuthority made;
  const Issued before = made.issue("store");
  auto authority = Authority::open(made.folder());
  ASSERT_TRUE(authority.has_value()) << authority.error().to_string();
  EXPECT_EQ(authority->domain(), "example.org");
  const auto after =
      authority->issue({.name = "reader", .dns = {}, .begins = unix_seconds(), .ends = unix_seconds() + 60});
  ASSERT_TRUE(after.has_value()) << after.error().to_string();
  EXPECT_NE(after->holder.serial, before.holder.serial);
  EXPECT_TRUE(made.trust()->verify(credential_of(*after)->chain()).has_value());
}

TEST(Authority, ACertificateEndsWithItsAuthorityAtTheLatest) {
  TestAuthority authority;
  EXPECT_EQ(authority.issue("store", {}, 0, 1000 * TestAuthority::kHour).holder.ends, authority.get().ends());
}

TEST(Authority, NamesThatCannotBeAreRefused) {
  TestAuthority authority;
  for (const char* name : {"", "a b", "a//b", "../a", "a*", "spiffe://x"}) {
    EXPECT_FALSE(authority.get().issue({.name = name, .dns = {}, .begins = 0, .ends = unix_seconds()}).has_value())
        << name;
  }
  for (const std::string& dns : {std::string(), std::string("a b"), std::string("a,b"), std::string(256, 'a')}) {
    const auto issued = authority.get().issue({.name = "x", .dns = {dns}, .begins = 0, .ends = unix_seconds()});
    ASSERT_FALSE(issued.has_value()) << dns;
    EXPECT_EQ(issued.error().code(), Code::kInvalid);
  }
  EXPECT_TRUE(authority.get()
                  .issue({.name = "x", .dns = {std::string(255, 'a'), "worker-*"}, .begins = 0, .ends = unix_seconds()})
                  .has_value());
}

TEST(Authority, ACertificateHasABoundedNumberOfNames) {
  TestAuthority authority;
  const auto with = [&](unsigned names) {
    const std::vector<std::string> dns(names - 1, "n");  // The URI is one, too.
    return authority.get().issue({.name = "x", .dns = dns, .begins = 0, .ends = unix_seconds()});
  };
  EXPECT_TRUE(with(kNamesMax).has_value());
  const auto beyond = with(kNamesMax + 1);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_NE(beyond.error().message().find("more than 64 names"), std::string::npos) << beyond.error().to_string();
}

TEST(Authority, TakesBackByNameAndBySerial) {
  TestAuthority authority;
  const Issued first = authority.issue("store"), second = authority.issue("store"), other = authority.issue("reader");
  const Issued over = authority.issue("store", {}, -100, -10);
  EXPECT_EQ(authority.get().revoke(first.holder.serial, unix_seconds()).value_or(0), 1u);
  EXPECT_EQ(authority.get().revoke(first.holder.serial, unix_seconds()).value_or(9), 0u);
  EXPECT_EQ(authority.get().revoke("store", unix_seconds()).value_or(0),
            1u);  // The second: one is over, one was revoked.
  EXPECT_EQ(authority.get().revoke("nobody", unix_seconds()).error().code(), Code::kNotFound);
  const auto entries = authority.get().issued();
  ASSERT_TRUE(entries.has_value()) << entries.error().to_string();
  ASSERT_EQ(entries->size(), 4u);
  for (const Entry& each : *entries) {
    const bool is_revoked = each.holder.serial == first.holder.serial || each.holder.serial == second.holder.serial;
    EXPECT_EQ(each.is_revoked, is_revoked) << each.holder.serial;
  }
  EXPECT_TRUE(authority.trust()->verify(credential_of(other)->chain()).has_value());
}

TEST(Authority, ItsListGrowsWithoutAnEnd) {
  TestAuthority authority;
  for (int i = 0; i < 40; ++i) {
    const Issued issued = authority.issue("store");
    ASSERT_EQ(authority.get().revoke(issued.holder.serial, unix_seconds()).value_or(0), 1u);
  }
  const Issued last = authority.issue("store");
  const auto entries = authority.get().issued();
  ASSERT_TRUE(entries.has_value()) << entries.error().to_string();
  EXPECT_EQ(entries->size(), 41u);
  EXPECT_EQ(std::ranges::count_if(*entries, [](const Entry& each) { return each.is_revoked; }), 40);
  EXPECT_TRUE(authority.trust()->verify(credential_of(last)->chain()).has_value());
}

}  // namespace
}  // namespace hawser::identity
