#include "backend/shm/place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "backend/shm/mapping.h"
#include "backend/shm/options.h"
#include "backend/shm/test_host.h"

namespace hawser::backend::shm {
namespace {

TEST(Address, RoundTripsAndRefusesGarbage) {
  const Address address{{1, 2}, 1000, "/run/user/1000/hawser/x.sock"};
  const std::string bytes = encode(address);
  const Address back = decode_address(bytes).value();
  EXPECT_EQ(back.boot, address.boot);
  EXPECT_EQ(back.user, address.user);
  EXPECT_EQ(back.socket, address.socket);
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_address(bytes.substr(0, size)));
  EXPECT_FALSE(decode_address(bytes + '\0')) << "another form has another version";
  EXPECT_FALSE(decode_address(encode(Address{{1, 2}, 1, std::string("/tmp/a\0b", 8)})));
  EXPECT_FALSE(decode_address(encode(Address{{1, 2}, 1, std::string(200, 'x')})));
}

TEST(Place, RefusesFoldersThatOthersMayEnter) {
  TestFolder folder;
  ForkList forks;
  const std::string open = folder.path() + "/open";
  ::mkdir(open.c_str(), 0755);
  ::chmod(open.c_str(), 0755);
  const auto refused = Place::open({.folder = open}, {1, 1}, forks);
  EXPECT_EQ(refused.error().code(), Code::kDenied);
  EXPECT_FALSE(refused.error().advice().empty());
  ::rmdir(open.c_str());
  EXPECT_FALSE(Place::open({.folder = folder.path() + "/no/such"}, {1, 1}, forks));
  EXPECT_EQ(Place::open({.folder = folder.path() + "/" + std::string(90, 'x')}, {1, 1}, forks).error().code(),
            Code::kInvalid);
  ::rmdir((folder.path() + "/" + std::string(90, 'x')).c_str());
}

TEST(Place, IsPrivateAndGoesWithItsOwner) {
  TestFolder folder;
  ForkList forks;
  auto place = Place::open({.folder = folder.path() + "/made"}, {1, 1}, forks).value();
  struct stat status {};
  ASSERT_EQ(::stat(place->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((folder.path() + "/made").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_TRUE(connect_to(place->path()));
  const std::string path = place->path();
  place.reset();
  EXPECT_NE(::stat(path.c_str(), &status), 0);
  // No proof of a death: in another mount namespace it would be missing as well.
  EXPECT_EQ(connect_to(path).error().code(), Code::kUnsupported);
  EXPECT_EQ(connect_to(path).error().scope(), Scope::kPath);
  EXPECT_EQ(::rmdir((folder.path() + "/made").c_str()), 0);  // nothing is left
}

/// A newcomer of `seconds` ago found this lock file already.
void mark(const std::string& stem, std::time_t seconds) {
  const std::array<timespec, 2> times{timespec{std::time(nullptr) - seconds, 0}, {std::time(nullptr) - seconds, 0}};
  ASSERT_EQ(::chmod((stem + ".lock").c_str(), 0400), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, (stem + ".lock").c_str(), times.data(), 0), 0);
}

/// What a process leaves behind that died and was found dead two minutes ago.
void leave_behind(const std::string& folder, const base::Id128& incarnation) {
  const std::string stem = folder + "/" + base::to_hex(incarnation);
  for (const std::string suffix : {".lock", ".sock"}) {
    const base::Fd file(::open((stem + suffix).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(file);
  }
  mark(stem, 120);
}
bool is_left(const std::string& folder, const base::Id128& incarnation) {
  return ::access((folder + "/" + base::to_hex(incarnation) + ".lock").c_str(), F_OK) == 0;
}

TEST(Place, WhatTheDeadLeftIsSwept) {
  TestFolder folder;
  ForkList forks;
  const auto numbered = [](std::uint64_t i) { return base::Id128{i * 0x9e3779b97f4a7c15U, i}; };
  for (std::uint64_t i = 1; i <= 20; ++i) leave_behind(folder.path(), numbered(i));
  auto place = Place::open({.folder = folder.path()}, {1, 1}, forks).value();
  for (std::uint64_t i = 1; i <= 20; ++i) EXPECT_FALSE(is_left(folder.path(), numbered(i))) << i;
  EXPECT_TRUE(connect_to(place->path()));
  // Where there are many, a newcomer tries those named like itself.
  for (std::uint64_t i = 1; i <= 200; ++i) leave_behind(folder.path(), numbered(i));
  const base::Id128 alike{numbered(7).hi ^ 1, 7}, other{numbered(7).hi ^ (std::uint64_t{1} << 63), 7};
  const auto second = Place::open({.folder = folder.path()}, other, forks).value();
  EXPECT_TRUE(is_left(folder.path(), numbered(7)));
  const auto third = Place::open({.folder = folder.path()}, alike, forks).value();
  EXPECT_FALSE(is_left(folder.path(), numbered(7)));
  for (std::uint64_t i = 1; i <= 200; ++i) {
    const std::string stem = folder.path() + "/" + base::to_hex(numbered(i));
    ::unlink((stem + ".sock").c_str());
    ::unlink((stem + ".lock").c_str());
  }
}

TEST(Place, TheSocketOfTheDeadProvesTheirDeathForAMinute) {
  TestFolder folder;
  ForkList forks;
  const base::Id128 dead{3, 4};
  const std::string stem = folder.path() + "/" + base::to_hex(dead);
  const auto newcomer = [&](std::uint64_t number) {
    return Place::open({.folder = folder.path()}, {number, 1}, forks);
  };
  {
    const auto place = Place::open({.folder = folder.path()}, dead, forks).value();
    ASSERT_EQ(::rename((stem + ".sock").c_str(), (stem + ".kept").c_str()), 0);
    ASSERT_EQ(::rename((stem + ".lock").c_str(), (stem + ".held").c_str()), 0);
  }
  ASSERT_EQ(::rename((stem + ".kept").c_str(), (stem + ".sock").c_str()), 0);
  ASSERT_EQ(::rename((stem + ".held").c_str(), (stem + ".lock").c_str()), 0);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(newcomer(i));
    EXPECT_EQ(connect_to(stem + ".sock").error().code(), Code::kDisconnected) << i;
  }
  mark(stem, 59);
  EXPECT_TRUE(newcomer(4));
  EXPECT_TRUE(is_left(folder.path(), dead));
  mark(stem, 61);
  EXPECT_TRUE(newcomer(5));
  EXPECT_FALSE(is_left(folder.path(), dead));
  EXPECT_EQ(connect_to(stem + ".sock").error().code(), Code::kUnsupported);
}

TEST(Options, DefaultsRangesAndForms) {
  EXPECT_EQ(read_options({}).value().ring_bytes, 256u * 1024);
  EXPECT_EQ(read_options({{"ring_bytes", "64KiB"}}).value().ring_bytes, 65536u);
  EXPECT_FALSE(read_options({{"ring_bytes", "1000"}}));
  const Status odd = read_options({{"ring_bytes", "5000"}}).error();
  EXPECT_EQ(odd.code(), Code::kInvalid);
  EXPECT_EQ(odd.advice(), "use 4096 or 8192");
  EXPECT_FALSE(read_options({{"membarrier", "maybe"}}));
  EXPECT_EQ(read_options({{"colour", "red"}}).value().warnings.size(), 1u);
  EXPECT_EQ(read_options({}).value().in_force.at("attach"), "true");
}

TEST(ForkList, ClosesWhatIsListed) {
  ForkList forks;
  ForkFd kept(base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), forks);
  const int number = kept.get();
  {
    ForkFd other(base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), forks);
    kept = std::move(other);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);  // moving in closed the old one
  EXPECT_GE(::fcntl(kept.get(), F_GETFD), 0);
  const int listed = ::fcntl(kept.get(), F_DUPFD_CLOEXEC, 100);
  forks.add(listed);
  forks.add(5000);  // never open: harmless
  forks.remove(kept.get());
  forks.close_all();
  EXPECT_EQ(::fcntl(listed, F_GETFD), -1);
  EXPECT_GE(::fcntl(kept.get(), F_GETFD), 0);
}

TEST(Mapping, OnlySealedFilesAreTaken) {
  const base::Fd plain(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(sealed_size(plain.get()).error().code(), Code::kCorrupt);
  const base::Fd file = make_sealed_file("hawser-test", 8192, true).value();
  EXPECT_EQ(sealed_size(file.get()).value(), 8192u);
  const base::Fd read_only = reopen_read_only(file.get()).value();
  EXPECT_FALSE(Mapping::map(read_only.get(), 8192, Mapping::Access::kReadWrite));
  Mapping mapping = Mapping::map(read_only.get(), 8192, Mapping::Access::kRead).value();
  mapping.shrink_by(4096);
  EXPECT_EQ(mapping.size(), 4096u);
  mapping.shrink_by(8192);
  EXPECT_FALSE(mapping);
}

}  // namespace
}  // namespace hawser::backend::shm
