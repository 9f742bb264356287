#include "cli/files/listings.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/test_folder.h"

namespace hawser::cli {
namespace {

Incarnation client(int number) {
  Incarnation made;
  made.bytes[0] = std::byte(number);
  return made;
}

class Listed : public testing::Test {
 protected:
  std::size_t pages(int who, const std::string& path, std::size_t page) {
    std::size_t told = 0;
    for (std::size_t from = 0;;) {
      const Listing files = listings_.get(client(who), path, from, walk_).value();
      EXPECT_EQ(files->size(), files_.size());
      const std::size_t here = std::min(page, files->size() - from);
      told += here;
      from += here;
      if (from == files->size()) break;
    }
    listings_.drop(client(who), path);
    return told;
  }

  std::vector<ListedFile> files_ = std::vector<ListedFile>(20'000, ListedFile{"file", 1});
  std::size_t walks_ = 0;
  Listings listings_;
  const Listings::Walk walk_ = [this] {
    ++walks_;
    return Result<std::vector<ListedFile>>(files_);
  };
};

TEST_F(Listed, ATreeIsWalkedOnceForAllOfItsPages) {
  EXPECT_EQ(pages(1, "a", 500), files_.size());
  EXPECT_EQ(walks_, 1u);
  EXPECT_EQ(pages(1, "a", 500), files_.size());
  EXPECT_EQ(walks_, 2u) << "what is told from its beginning is looked for anew";
}

TEST_F(Listed, PagesTellOfOneMoment) {
  const Listing first = listings_.get(client(1), "a", 0, walk_).value();
  files_.erase(files_.begin());
  EXPECT_EQ(listings_.get(client(1), "a", 500, walk_).value(), first);
  EXPECT_NE(listings_.get(client(2), "a", 500, walk_).value(), first) << "another client's";
  EXPECT_NE(listings_.get(client(1), "b", 500, walk_).value(), first) << "another folder's";
}

TEST_F(Listed, ThoseAskedForLongestAgoAreWalkedAgain) {
  constexpr int kMany = static_cast<int>(Listings::kKept);
  files_.resize(1);
  for (int i = 0; i <= kMany; ++i) {
    (void)listings_.get(client(i), "a", 0, walk_).value();
    (void)listings_.get(client(1), "a", i > 0 ? 1 : 0, walk_).value();  // In use all the time.
  }
  walks_ = 0;
  (void)listings_.get(client(1), "a", 1, walk_).value();
  (void)listings_.get(client(kMany), "a", 1, walk_).value();
  EXPECT_EQ(walks_, 0u);
  (void)listings_.get(client(0), "a", 1, walk_).value();
  EXPECT_EQ(walks_, 1u);
}

TEST_F(Listed, ThoseOfAClientThatIsGoneGoTogether) {
  for (const char* path : {"a", "b"}) {
    (void)listings_.get(client(1), path, 0, walk_).value();
    (void)listings_.get(client(2), path, 0, walk_).value();
  }
  listings_.drop(client(1));
  EXPECT_EQ(listings_.kept(), 2u);
  walks_ = 0;
  (void)listings_.get(client(2), "a", 1, walk_).value();
  (void)listings_.get(client(2), "b", 1, walk_).value();
  EXPECT_EQ(walks_, 0u);
}

TEST(WalkFolder, RegularFilesInOrder) {
  const base::TestFolder folder("hawser-listing");
  std::filesystem::create_directories(folder.path() + "/b/c");
  for (const char* name : {"/z", "/b/y", "/b/c/x"}) std::ofstream(folder.path() + name) << name;
  std::filesystem::create_symlink("z", folder.path() + "/link");
  const base::Fd fd(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::vector<ListedFile> expected = {{"b/c/x", 6}, {"b/y", 4}, {"z", 2}};
  EXPECT_EQ(walk_folder(fd.get(), "folder").value(), expected);
  EXPECT_EQ(walk_folder(fd.get(), "folder", 2).error().code(), Code::kUnsupported);
}

TEST(WalkFolder, AFolderThatCannotBeReadIsNamed) {
  const base::TestFolder folder("hawser-listing");
  std::filesystem::create_directories(folder.path() + "/a/closed");
  std::ofstream(folder.path() + "/b") << "b";
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder.path() + "/a/closed", std::filesystem::perms::none);
  const base::Fd fd(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr uid_t kNobody = 65534;  // The tests may run as a user who may read everything.
  if (::geteuid() == 0) ::setfsuid(kNobody);
  const auto walked = walk_folder(fd.get(), "served");
  ::setfsuid(::geteuid());
  ASSERT_FALSE(walked.has_value());
  EXPECT_EQ(walked.error().code(), Code::kDenied);
  EXPECT_NE(walked.error().to_string().find("'served/a/closed'"), std::string::npos) << walked.error().to_string();
}

}  // namespace
}  // namespace hawser::cli
