// Cases that the suite of test/conformance cannot make: files that are broken, locked, left over, or changed by others.

#include "directory/file_directory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/test_folder.h"
#include "directory/file_format.h"
#include "directory/folder.h"

namespace hawser::directory {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class FileDirectoryTest : public testing::Test {
 protected:
  FileDirectoryTest() { directory_ = open(); }

  std::shared_ptr<Directory> open() {
    return open_file_directory({.path = folder(), .wall_ns = [this] { return wall_ns_; }}).value();
  }
  std::string folder() const { return root_ + "/cards"; }
  fs::path file(const std::string& key) const { return fs::path(folder()) / file_name(key); }
  void write(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()));
  }

  /// Runs jobs until `ticket` answers; time goes on by a look's interval.
  DirectoryEvent await(Ticket ticket, Duration patience = 5s) {
    for (const Instant end = now_ + patience; now_ < end;) {
      if (auto event = directory_->poll(ticket)) return *std::move(event);
      if (!directory_->run_job(now_, now_)) now_ = now_ + 50ms;
    }
    return {.ticket = ticket, .status = Status(Code::kTimedOut, "no answer"), .entries = {}};
  }
  DirectoryEvent put(std::string_view key, std::string_view value, PutOptions options = {}) {
    return await(directory_->put(key, value, options));
  }
  std::vector<std::string> list() {
    std::vector<std::string> keys;
    for (const DirectoryEntry& entry : await(directory_->list("")).entries) keys.push_back(entry.key);
    return keys;
  }

  const base::TestFolder own_{"hawser-directory"};
  const std::string& root_ = own_.path();
  std::uint64_t wall_ns_ = 1'700'000'000'000'000'000;
  Instant now_ = Instant::from_ns(0);
  std::shared_ptr<Directory> directory_;
};

using Keys = std::vector<std::string>;

TEST_F(FileDirectoryTest, MakesItsFolderForThisUserOnly) {
  struct stat found {};
  ASSERT_EQ(stat(folder().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  put("k", "v");
  ASSERT_EQ(stat(file("k").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

// As everywhere: it may have room later.
TEST_F(FileDirectoryTest, AFullFileSystemIsBusy) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", folder().c_str(), "tmpfs", 0, "size=64k,mode=700") != 0) {
    GTEST_SKIP() << "no right to mount a small file system: " << std::strerror(errno);
  }
  ASSERT_TRUE(put("kept", "old").status.ok());
  Status status;
  for (int i = 0; i < 30 && status.ok(); ++i) status = put(std::to_string(i), std::string(4096, 'x')).status;
  EXPECT_EQ(status.code(), Code::kBusy) << status.to_string();
  EXPECT_NE(status.advice().find("free space"), std::string::npos) << status.to_string();
  EXPECT_EQ(put("kept", "new").status.code(), Code::kBusy);
  EXPECT_EQ(await(directory_->get("kept")).entries.front().value, "old");
  EXPECT_TRUE(await(directory_->erase("0", {})).status.ok());
  EXPECT_TRUE(put("kept", "new").status.ok());
  ::umount2(folder().c_str(), MNT_DETACH);
}

TEST_F(FileDirectoryTest, AFolderThatCannotBeSaysWhy) {
  write(root_ + "/file", "");
  const Status status = file_directory(root_ + "/file/cards").status();
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_EQ(status.message(), "directory: cannot make " + root_ + "/file/cards: Not a directory (errno 20)");
  EXPECT_NE(status.advice().find("mkdir -p"), std::string_view::npos);
  EXPECT_EQ(file_directory("").status().code(), Code::kInvalid);
}

TEST_F(FileDirectoryTest, AFolderOfAnotherUserIsDenied) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder().c_str(), 0755), 0);
  ASSERT_EQ(seteuid(65534), 0);
  const Status status = file_directory(folder()).status();
  const Status inside = file_directory(folder() + "/deeper").status();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(status.code(), Code::kDenied);
  EXPECT_EQ(status.message(), "directory: cannot write " + folder() + "/.lock: Permission denied (errno 13)");
  EXPECT_EQ(inside.code(), Code::kDenied);
}

TEST_F(FileDirectoryTest, GarbageIsPassedOverAndReported) {
  put("good", "v");
  write(folder() + "/empty", "");
  write(folder() + "/text", "hello\n");
  write(file("moved"), encode_record({"other", "v", 7, 0}));
  std::string torn = encode_record({"torn", "value", 7, 0});
  torn.pop_back();
  write(file("torn"), torn);
  fs::create_directory(folder() + "/sub");
  fs::create_symlink(file("good"), folder() + "/link");
  ASSERT_EQ(mkfifo((folder() + "/pipe").c_str(), 0600), 0);
  fs::resize_file(file("torn"), kFileSizeMax + 1);
  EXPECT_EQ(list(), Keys{"good"});
  const std::vector<std::string> warnings = directory_->warnings();
  ASSERT_EQ(warnings.size(), 7u);
  EXPECT_EQ(warnings[0], folder() + "/empty is passed over: not a directory value: it begins with no header line");
  EXPECT_EQ(warnings[1], folder() + "/link is passed over: not a directory value: it is a symbolic link");
  EXPECT_EQ(warnings[3], folder() + "/pipe is passed over: not a directory value: it is no regular file");
}

TEST_F(FileDirectoryTest, GettingGarbageIsCorruptAndPuttingMendsIt) {
  write(file("k"), "garbage");
  const DirectoryEvent event = await(directory_->get("k"));
  EXPECT_EQ(event.status.code(), Code::kCorrupt);
  EXPECT_EQ(event.status.message(), "directory: cannot read \"k\"");
  EXPECT_TRUE(put("k", "v", {.create_only = true}).status.ok());
  EXPECT_EQ(await(directory_->get("k")).entries.at(0).value, "v");
  write(file("k"), "garbage");
  EXPECT_TRUE(await(directory_->erase("k")).status.ok());
  EXPECT_FALSE(fs::exists(file("k")));
}

TEST_F(FileDirectoryTest, LeftOversOfACrashAreSweptByTheNextScan) {
  put("k", "v");
  write(folder() + "/.tmp-0123", "half a val");
  EXPECT_EQ(list(), Keys{"k"});
  EXPECT_FALSE(fs::exists(folder() + "/.tmp-0123"));
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(FileDirectoryTest, ExpiredFilesAreRemoved) {
  put("goes", "v", {.lease = 1s});
  put("stays", "v");
  wall_ns_ += 2'000'000'000;
  EXPECT_EQ(list(), Keys{"stays"});
  EXPECT_FALSE(fs::exists(file("goes")));
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(FileDirectoryTest, AWriterThatDiedInAChangeHarmsNobody) {
  put("k", "1");
  const Ticket watch = directory_->watch("");
  await(watch);
  {
    // As a process leaves it that died after it marked its change, before it renamed.
    const base::Fd lock(::open((folder() + "/.lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(pwrite(lock.get(), "00000000000000ff\n", 17, 0), 17);
  }
  EXPECT_TRUE(put("k", "2").status.ok());
  const DirectoryEvent event = await(watch);
  EXPECT_EQ(event.entries.at(0).value, "2");
}

TEST_F(FileDirectoryTest, ADamagedOrMissingLockFileIsMadeAnew) {
  const std::uint64_t before = put("k", "1").entries.at(0).version;
  write(folder() + "/.lock", "nonsense");
  const std::uint64_t after = put("k", "2").entries.at(0).version;
  EXPECT_GT(after, before);
  fs::remove(folder() + "/.lock");
  EXPECT_GT(put("k", "3").entries.at(0).version, after);
}

TEST_F(FileDirectoryTest, ALockedFolderIsWaitedForThenBusy) {
  base::Fd other(::open((folder() + "/.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  const Ticket patient = directory_->put("k", "v", {});
  EXPECT_FALSE(directory_->run_job(now_, now_));
  EXPECT_FALSE(directory_->poll(patient));
  now_ = now_ + 1s;
  other.reset();
  EXPECT_TRUE(await(patient).status.ok());

  other.reset(::open((folder() + "/.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  EXPECT_TRUE(await(directory_->get("k")).status.ok());  // Reading needs no lock.
  const Status status = put("k", "w").status;
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_EQ(status.message(), "directory: " + folder() + "/.lock is locked by another process");
}

TEST_F(FileDirectoryTest, WhatIsChangedByHandIsSeenInTheEnd) {
  put("k", "1");
  const Ticket watch = directory_->watch("");
  await(watch);
  fs::remove(file("k"));
  const DirectoryEvent event = await(watch);
  EXPECT_EQ(event.kind, DirectoryEvent::Kind::kErased);
  EXPECT_EQ(event.entries.at(0).key, "k");
}

TEST_F(FileDirectoryTest, AnIdleWatchReadsOneFilePerLook) {
  put("k", "1");
  await(directory_->watch(""));
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(directory_->run_job(now_, now_)) << "a scan without a change";
    now_ = now_ + 50ms;
  }
}

TEST_F(FileDirectoryTest, ValuesOfOneSizeInOneTickAreToldApart) {
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 3; ++i) {
      const std::string value = std::to_string(1000 + round * 3 + i);
      put("k", value);
      if (i == 1) continue;  // Not looked at: the next put may get the inode of the last one that was.
      ASSERT_EQ(await(directory_->list("")).entries.at(0).value, value);
    }
  }
}

TEST_F(FileDirectoryTest, AVanishedFolderThatCannotBeMadeAgainIsAnErrorNotACrash) {
  fs::remove_all(folder());
  write(folder(), "a file in its place");
  EXPECT_EQ(put("k", "v").status.code(), Code::kFailed);
  EXPECT_TRUE(list().empty());
}

TEST_F(FileDirectoryTest, ValuesOutliveTheHandle) {
  put("k", "v");
  directory_.reset();
  directory_ = open();
  EXPECT_EQ(await(directory_->get("k")).entries.at(0).value, "v");
}

TEST_F(FileDirectoryTest, ADeletedFolderIsMadeAgain) {
  EXPECT_TRUE(put("k", "1").status.ok());
  const Ticket watch = directory_->watch("");
  EXPECT_EQ(await(watch).entries.size(), 1u);
  fs::remove_all(folder());
  EXPECT_EQ(await(directory_->get("k")).status.code(), Code::kNotFound);
  const DirectoryEvent again = put("k", "2", {.create_only = true});
  EXPECT_TRUE(again.status.ok()) << again.status.to_string();
  EXPECT_EQ(await(directory_->get("k")).entries.at(0).value, "2");
  DirectoryEvent told = await(watch);
  while (told.status.ok() && told.kind != DirectoryEvent::Kind::kChanged) told = await(watch);
  ASSERT_EQ(told.entries.size(), 1u);
  EXPECT_EQ(told.entries[0].value, "2");
  ASSERT_FALSE(directory_->warnings().empty());
  EXPECT_NE(directory_->warnings()[0].find("deleted"), std::string::npos);
  struct stat made {};
  ASSERT_EQ(::stat(folder().c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700u);
}

TEST_F(FileDirectoryTest, AReplacedFolderIsTheOneInUse) {
  EXPECT_TRUE(put("k", "1").status.ok());
  fs::rename(folder(), folder() + ".old");
  fs::create_directory(folder());
  EXPECT_EQ(await(directory_->get("k")).status.code(), Code::kNotFound);
  EXPECT_TRUE(put("k", "2").status.ok());
  EXPECT_TRUE(fs::exists(file("k")));
}

TEST_F(FileDirectoryTest, AnotherUsersFolderInItsPlaceIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  EXPECT_TRUE(put("k", "1").status.ok());
  fs::remove_all(folder());
  fs::create_directory(folder());
  ASSERT_EQ(::chown(folder().c_str(), 12345, 12345), 0);
  const DirectoryEvent refused = put("k", "2");
  EXPECT_EQ(refused.status.code(), Code::kDenied);
  EXPECT_NE(refused.status.message().find("12345"), std::string_view::npos);
  EXPECT_FALSE(fs::exists(file("k")));
}

}  // namespace
}  // namespace hawser::directory
