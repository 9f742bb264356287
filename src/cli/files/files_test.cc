#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "base/test_folder.h"
#include "cli/files/beneath.h"
#include "cli/files/chunk_io.h"
#include "cli/files/place.h"
#include "cli/files/protocol.h"
#include "fileio/file.h"

namespace hawser::cli {
namespace {

TEST(FilePlace, ServersAndPathsAreToldApart) {
  const auto place = [](std::string_view text, bool directory = false) { return parse_place(text, directory).value(); };
  EXPECT_EQ(place("store@10.0.0.5:7000:a/b").server, "store@10.0.0.5:7000");
  EXPECT_EQ(place("store@10.0.0.5:7000:a/b").path, "a/b");
  EXPECT_EQ(place("host:7000:").server, "@host:7000");
  EXPECT_EQ(place("[::1]:7000:a").server, "@[::1]:7000");
  EXPECT_EQ(place("store:a", true).server, "store");
  EXPECT_EQ(place("store:a", true).path, "a");
  for (const char* here : {"a", "./a:1:b", "/a:1:b", "", ":a"}) EXPECT_FALSE(place(here).is_remote()) << here;
  EXPECT_EQ(parse_place("host:a", false).error().code(), Code::kInvalid);
  EXPECT_EQ(parse_place("host:70x:a", false).error().code(), Code::kInvalid);
}

TEST(FileMessages, DeepOnesAreNone) {
  const auto nested = [](int depth, char open, char close) {
    const auto count = static_cast<std::size_t>(depth);
    const std::string text = "{\"id\":" + std::string(count, open) + std::string(count, close) + "}";
    return decode_file_message(text).json.is_object();
  };
  EXPECT_TRUE(nested(50, '[', ']'));
  EXPECT_FALSE(nested(100, '[', ']'));
  EXPECT_FALSE(nested(30'000, '[', ']'));  // A copy of it would need all of the stack.
  const std::string answer = "{\"a\":[1,2],\"b\":{}}";
  EXPECT_EQ(decode_file_message(answer).json.dump(), answer);
}

/// A file in a folder, and memory on pages.
class ChunkIo : public testing::Test {
 protected:
  static constexpr std::size_t kPage = 4096, kSize = 3 << 20;
  static base::Fd open(const std::string& path) {
    return base::Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  std::span<std::byte> memory(int round) {
    for (std::size_t i = 0; i < kSize; ++i) pages_.get()[i] = static_cast<std::byte>(i / 7 + std::size_t(round));
    return {pages_.get(), kSize};
  }
  /// Writes, and sees that just these bytes changed. Gives what went past the page cache.
  std::uint64_t write(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
    constexpr std::size_t kAround = 100;
    const std::vector<std::byte> around(kAround, std::byte{0xee});
    const std::uint64_t before = offset < kAround ? offset : kAround;
    EXPECT_EQ(::pwrite(fd, around.data(), before, static_cast<off_t>(offset - before)), ssize_t(before));
    const auto end = static_cast<off_t>(offset + bytes.size());
    EXPECT_EQ(::pwrite(fd, around.data(), kAround, end), ssize_t(kAround));
    const Result<WrittenChunk> written = write_chunk(fd, "file", offset, bytes);
    EXPECT_TRUE(written) << written.error().to_string();
    std::vector<std::byte> got(before + bytes.size() + kAround);
    const ReadChunk read = read_chunk(fd, "file", offset - before, got).value();
    EXPECT_EQ(read.bytes, got.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), got.begin() + std::ptrdiff_t(before)));
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + std::ptrdiff_t(before), around.begin()));
    EXPECT_TRUE(std::equal(got.end() - std::ptrdiff_t(kAround), got.end(), around.begin()));
    EXPECT_EQ(read_chunk(fd, "file", offset, std::span(got).first(bytes.size())).value().sum, sum_of(bytes));
    return written ? written->direct : 0;
  }
  /// The folder's file system lets bytes past the page cache.
  bool is_direct_here() const {
    const base::Fd fd(::open(folder_.path("probe").c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
    return fd.valid() && fileio::find_alignment(fd.get()).offset != 0;
  }

  const base::TestFolder folder_{"hawser-chunks"};
  const std::unique_ptr<std::byte, decltype(&std::free)> pages_{
      static_cast<std::byte*>(std::aligned_alloc(kPage, kSize)), &std::free};
};

TEST_F(ChunkIo, WhatIsWrittenIsReadWhateverItsAlignment) {
  const base::Fd fd = open(folder_.path("file"));
  int round = 0;
  for (const std::uint64_t offset : {0, 4096, 100, 512}) {
    for (const std::size_t skip : {0, 64, 100}) {
      for (const std::size_t size : {kSize - 200, kSize - kPage, std::size_t{10}}) {
        SCOPED_TRACE(testing::Message() << offset << " " << skip << " " << size);
        (void)write(fd.get(), offset, memory(round++).subspan(skip, size));
      }
    }
  }
}

TEST_F(ChunkIo, AllButTheEdgesGoesPastThePageCache) {
  if (!is_direct_here()) GTEST_SKIP() << "the temporary folder's file system has no direct I/O";
  const base::Fd fd = open(folder_.path("file"));
  EXPECT_EQ(write(fd.get(), 0, memory(0)), kSize);
  EXPECT_EQ(write(fd.get(), kPage, memory(1).first(kSize - 10)), kSize - kPage) << "an edge behind";
  // Memory lies as the offsets do: an edge before it, and one behind.
  EXPECT_EQ(write(fd.get(), 100, memory(2).subspan(100, kSize - 200)), kSize - 2 * kPage);
  EXPECT_EQ(write(fd.get(), kPage - 512, memory(3).subspan(kPage - 512)), kSize - kPage) << "512 would do for devices";
  EXPECT_EQ(write(fd.get(), 0, memory(4).subspan(1, kSize - kPage)), 0u) << "the memory does not lie so";
  EXPECT_EQ(write(fd.get(), 0, memory(5).first(kPage)), 0u) << "not worth it";
}

TEST_F(ChunkIo, WithoutDirectIoTheCacheTakesAll) {
  const std::string plain = folder_.path("plain");
  std::filesystem::create_directory(plain);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", plain.c_str(), "ramfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "no right to mount a file system without direct I/O: " << std::strerror(errno);
  }
  {
    const base::Fd refused(::open((plain + "/file").c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600));
    EXPECT_FALSE(refused.valid()) << "it has some";
    const base::Fd fd = open(plain + "/file");
    EXPECT_EQ(write(fd.get(), 0, memory(0)), 0u);
    EXPECT_EQ(write(fd.get(), 100, memory(1).subspan(100, kSize - 200)), 0u);
    const Status why = fileio::File::open({.path = plain + "/file", .direct = DirectIo::kRequire}).error();
    EXPECT_EQ(why.code(), Code::kUnsupported);
    EXPECT_NE(why.to_string().find("plain/file"), std::string::npos) << why.to_string();
    EXPECT_NE(why.to_string().find("O_DIRECT"), std::string::npos) << why.to_string();
    EXPECT_NE(why.advice().find("another file system"), std::string::npos) << why.to_string();
  }
  ::umount2(plain.c_str(), MNT_DETACH);
}

TEST_F(ChunkIo, AFullDiskIsToldOnceForBothWays) {
  const std::string small = folder_.path("small");
  std::filesystem::create_directory(small);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", small.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "no right to mount a small file system: " << std::strerror(errno);
  }
  const Status status = write_chunk(open(small + "/file").get(), "the file", 0, memory(0)).error();
  EXPECT_EQ(status.code(), Code::kBusy) << status.to_string();
  EXPECT_NE(status.to_string().find("writing 'the file'"), std::string::npos) << status.to_string();
  EXPECT_NE(status.advice().find("free space"), std::string::npos);
  ::umount2(small.c_str(), MNT_DETACH);
}

TEST(Beneath, PathsThatLeadOutAreDenied) {
  for (const std::string_view path : {"..", "a/../b", "/a", "//", "/.", "./../a", "a/.."}) {
    EXPECT_EQ(parts_of(path).error().code(), Code::kDenied) << path;
  }
  EXPECT_EQ(parts_of(std::string_view("a\0b", 3)).error().code(), Code::kDenied);
  EXPECT_TRUE(parts_of("").value().empty());
  EXPECT_EQ(parts_of("a/..b/c/").value().size(), 3u);
}

TEST(Beneath, DotsAndDoubledSlashesNameNothing) {
  using Parts = std::vector<std::string>;
  for (const std::string_view path : {"", ".", "./", "./.", ".//"}) EXPECT_TRUE(parts_of(path).value().empty()) << path;
  for (const std::string_view path : {"a/b", "./a/b", "a//b", "a/./b/", ".//a/b/."}) {
    EXPECT_EQ(parts_of(path).value(), (Parts{"a", "b"})) << path;
  }
  EXPECT_EQ(parts_of("./.a/...").value(), (Parts{".a", "..."}));
}

TEST(Beneath, ListedPathsAreSpelledOneWay) {
  for (const std::string_view path : {"a", "a/b", ".a/..b"}) EXPECT_TRUE(check_listed_path(path).ok()) << path;
  for (const std::string_view path : {"", ".", "./a", "a/", "a//b", "a/.", "../a", "/a"}) {
    EXPECT_EQ(check_listed_path(path).code(), Code::kDenied) << path;
  }
}

// `cp -r` quotes names that the server chose.
TEST(Beneath, WhatIsQuotedIsOneLine) {
  EXPECT_NE(parts_of("../a\nb\033[31m").error().message().find("'../a\\x0ab\\x1b[31m'"), std::string::npos);
}

TEST(Beneath, LinksAreNotFollowed) {
  const base::TestFolder folder("hawser-beneath");
  const std::string& root = folder.path();
  std::filesystem::create_directory(root + "/inner");
  std::filesystem::create_symlink("/", root + "/out");
  std::filesystem::create_symlink("/etc/passwd", root + "/inner/file");
  std::ofstream(root + "/inner/good") << "good";
  {
    const base::Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_TRUE(open_beneath(fd.get(), "inner/good", O_RDONLY).has_value());
    EXPECT_TRUE(open_beneath(fd.get(), "", O_RDONLY | O_DIRECTORY).has_value());
    EXPECT_EQ(open_beneath(fd.get(), "out/etc/passwd", O_RDONLY).error().code(), Code::kDenied);
    EXPECT_EQ(open_beneath(fd.get(), "inner/file", O_RDONLY).error().code(), Code::kDenied);
    EXPECT_EQ(open_beneath(fd.get(), "inner/none", O_RDONLY).error().code(), Code::kNotFound);
    EXPECT_TRUE(find_beneath(fd.get(), "new/folder/file", true).has_value());
    EXPECT_TRUE(std::filesystem::is_directory(root + "/new/folder"));
    EXPECT_EQ(find_beneath(fd.get(), "out/new/file", true).error().code(), Code::kDenied);
  }
}

TEST(FileMessage, CarriesATail) {
  const std::string bytes = encode_file_message({{"op", "hello"}}, std::string_view("\0\1", 2));
  const FileMessage message = decode_file_message(bytes);
  EXPECT_EQ(message.json["op"], "hello");
  EXPECT_EQ(message.tail, std::string_view("\0\1", 2));
  EXPECT_TRUE(decode_file_message("[1]").json.is_null());
  EXPECT_TRUE(decode_file_message("{").json.is_null());
  EXPECT_EQ(decode_file_message(encode_file_message({{"error", "\xff"}})).json["error"], "\xef\xbf\xbd");
}

TEST(FileMessage, PathsAreBytes) {
  for (const std::string path : {"", "a/b", "\xc3\xa4", "\xff", "a\xc3/\x80z", "\x01\n\"\\"}) {
    const FileMessage message = decode_file_message(encode_file_message({{"path", json_of_path(path)}}));
    EXPECT_EQ(path_from(message.json["path"]).value(), path);
  }
  EXPECT_TRUE(json_of_path("\xc3\xa4").is_string()) << "a text where it can be one";
  for (const Json& none :
       {Json(), Json(1), Json::object(), Json{{"hex", 1}}, Json{{"hex", "f"}}, Json{{"hex", "0G"}}}) {
    EXPECT_EQ(path_from(none).error().code(), Code::kInvalid) << none.dump();
  }
}

}  // namespace
}  // namespace hawser::cli
