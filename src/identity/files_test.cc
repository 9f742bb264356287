#include "identity/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/test_folder.h"
#include "identity/test_authority.h"
#include "identity/whole_file.h"

namespace hawser::identity {
namespace {

TEST(IdentityFiles, AreReadUnderAnyOfTheirNames) {
  TestAuthority authority;
  const Issued issued = authority.issue("store");
  base::TestFolder folder;
  for (const auto& [certificate, key, bundle] : {std::tuple("tls.crt", "tls.key", "ca.crt"),
                                                 {"svid.pem", "svid_key.pem", "svid_bundle.pem"},
                                                 {"cert.pem", "key.pem", "bundle.pem"}}) {
    const std::string at = folder.path(certificate);
    std::filesystem::create_directory(at);
    ASSERT_TRUE(write_whole_file(at + "/" + certificate, issued.certificate, 0644).ok());
    ASSERT_TRUE(write_whole_file(at + "/" + key, issued.key, 0600).ok());
    ASSERT_TRUE(write_whole_file(at + "/" + bundle, issued.authorities, 0644).ok());
    const auto snapshot = IdentityFiles(at).read();
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().to_string();
    EXPECT_EQ(snapshot->credential->holder().id.path(), "store");
  }
}

TEST(IdentityFiles, ARelativePathStaysWhereItWas) {
  TestAuthority authority;
  const std::filesystem::path folder(authority.issue_to("store")), here = std::filesystem::current_path();
  std::filesystem::current_path(folder.parent_path());
  const IdentityFiles files(folder.filename().string());
  std::filesystem::current_path(here);
  EXPECT_EQ(files.folder(), folder.string());
  EXPECT_TRUE(files.read().has_value());
}

TEST(IdentityFiles, ErrorsNameTheFile) {
  TestAuthority authority;
  for (const char* name : {"tls.crt", "tls.key", "ca.crt"}) {
    const std::string folder = authority.issue_to("store");
    ASSERT_TRUE(write_whole_file(folder + "/" + name, "garbage", 0600).ok());
    const auto garbage = IdentityFiles(folder).read();
    ASSERT_FALSE(garbage.has_value()) << name;
    EXPECT_EQ(garbage.error().code(), Code::kInvalid) << name;
    EXPECT_NE(garbage.error().message().find(folder), std::string::npos) << garbage.error().to_string();
    std::filesystem::remove(folder + "/" + name);
    const auto missing = IdentityFiles(folder).read();
    ASSERT_FALSE(missing.has_value()) << name;
    EXPECT_EQ(missing.error().code(), Code::kNotFound) << name;
    EXPECT_NE(missing.error().to_string().find(name), std::string::npos) << missing.error().to_string();
  }
  EXPECT_EQ(IdentityFiles("/nowhere").read().error().code(), Code::kNotFound);
}

TEST(IdentityFiles, AKeyThatOthersMayReadIsRefused) {
  TestAuthority authority;
  const std::string folder = authority.issue_to("store");
  for (const mode_t mode : {0644u, 0604u, 0660u, 0602u}) {
    ASSERT_EQ(::chmod((folder + "/tls.key").c_str(), mode), 0);
    EXPECT_EQ(IdentityFiles(folder).read().error().code(), Code::kDenied) << std::oct << mode;
  }
  for (const mode_t mode : {0600u, 0400u, 0440u, 0640u}) {
    ASSERT_EQ(::chmod((folder + "/tls.key").c_str(), mode), 0);
    EXPECT_TRUE(IdentityFiles(folder).read().has_value()) << std::oct << mode;
  }
}

TEST(IdentityFiles, ChangesAreSeenOnce) {
  TestAuthority authority;
  IdentityFiles files(authority.issue_to("store"));
  EXPECT_TRUE(files.have_changed());
  EXPECT_FALSE(files.have_changed());
  ASSERT_TRUE(authority.issue("store").write(files.folder()).ok());
  EXPECT_TRUE(files.have_changed());
  EXPECT_FALSE(files.have_changed());
  std::filesystem::remove(files.folder() + "/ca.crl");
  EXPECT_TRUE(files.have_changed());
}

TEST(NameBeneath, IsOneThatTheIdentityMayHave) {
  TestAuthority authority;
  EXPECT_NE(one_of_many("ping"), one_of_many("ping"));
  EXPECT_TRUE(one_of_many("ping").starts_with("ping-"));
  EXPECT_EQ(name_beneath("", "ping-1"), "ping-1");
  EXPECT_EQ(name_beneath("/nowhere", "ping-1"), "ping-1");
  EXPECT_EQ(name_beneath(authority.issue_to("store"), "ping-1"), "store/ping-1");
}

// Kubernetes changes a link to a folder.
TEST(IdentityFiles, ALinkThatLeadsElsewhereIsAChange) {
  TestAuthority authority;
  base::TestFolder folder;
  const std::string link = folder.path("identity");
  std::filesystem::create_directory_symlink(authority.issue_to("store"), link);
  IdentityFiles files(link);
  EXPECT_TRUE(files.have_changed());
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(authority.issue_to("store"), link);
  EXPECT_TRUE(files.have_changed());
}

}  // namespace
}  // namespace hawser::identity
