#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "base/test_folder.h"
#include "cli/files/beneath.h"
#include "cli/files/chunk_io.h"
#include "cli/files/place.h"
#include "cli/files/protocol.h"

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

TEST(ChunkIo, WhatIsWrittenIsReadWhateverItsAlignment) {
  const base::TestFolder folder("hawser-chunks");
  const base::Fd fd(::open(folder.path("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  constexpr std::size_t kSize = 3 << 20;
  std::byte* const pages = static_cast<std::byte*>(std::aligned_alloc(4096, kSize));
  const std::unique_ptr<std::byte, decltype(&std::free)> owner(pages, &std::free);
  std::vector<std::byte> read(kSize);
  int round = 0;
  for (const std::uint64_t offset : {0, 4096, 100}) {
    for (const std::size_t skip : {0, 64}) {
      for (const std::size_t size : {kSize - 64, kSize - 4096, std::size_t{10}}) {
        for (std::size_t i = 0; i < kSize; ++i)
          pages[i] = static_cast<std::byte>(i / 7 + static_cast<std::size_t>(round));
        ++round;
        const std::span<const std::byte> bytes(pages + skip, size);
        ASSERT_TRUE(write_chunk(fd.get(), "file", offset, bytes).ok());
        const ReadChunk got = read_chunk(fd.get(), "file", offset, std::span(read).first(size)).value();
        ASSERT_EQ(got.bytes, size);
        EXPECT_EQ(got.sum, sum_of(bytes));
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), read.begin())) << offset << " " << skip << " " << size;
      }
    }
  }
}

TEST(Beneath, PathsThatLeadOutAreDenied) {
  for (const std::string_view path : {"..", "a/../b", "/a", "a//b", "./a", "a/.", "a/.."}) {
    EXPECT_EQ(parts_of(path).error().code(), Code::kDenied) << path;
  }
  EXPECT_EQ(parts_of(std::string_view("a\0b", 3)).error().code(), Code::kDenied);
  EXPECT_TRUE(parts_of("").value().empty());
  EXPECT_EQ(parts_of("a/..b/c/").value().size(), 3u);
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
  const std::string bytes = encode_file_message({{"op", "hello"}}, std::string_view("\0\1", 2)).value();
  const FileMessage message = decode_file_message(bytes);
  EXPECT_EQ(message.json["op"], "hello");
  EXPECT_EQ(message.tail, std::string_view("\0\1", 2));
  EXPECT_TRUE(decode_file_message("[1]").json.is_null());
  EXPECT_TRUE(decode_file_message("{").json.is_null());
  EXPECT_EQ(encode_file_message({{"path", "\xff"}}).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::cli
