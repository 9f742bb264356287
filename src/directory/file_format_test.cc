#include "directory/file_format.h"

#include <gtest/gtest.h>

#include <set>

namespace hawser::directory {
namespace {

const FileRecord kRecord{"hawser/cards/a", std::string("v\0\n\xff", 4), 42, 1700000000000000000};

TEST(FileFormat, GoldenFile) {
  EXPECT_EQ(encode_record(kRecord),
            std::string("hawser-value 1 42 1700000000000000000 14 4 8b2f323b5b988e5a\nhawser/cards/av\0\n\xff", 78));
}

TEST(FileFormat, ReadsWhatItWrote) {
  const auto record = decode_record(encode_record(kRecord)).value();
  EXPECT_EQ(record.key, kRecord.key);
  EXPECT_EQ(record.value, kRecord.value);
  EXPECT_EQ(record.version, kRecord.version);
  EXPECT_EQ(record.expiry_ns, kRecord.expiry_ns);
  const FileRecord largest{std::string(kDirectoryKeyMax, '\0'), std::string(kDirectoryValueMax, 'x'), UINT64_MAX,
                           UINT64_MAX};
  const std::string file = encode_record(largest);
  EXPECT_LE(file.size(), kFileSizeMax);
  EXPECT_EQ(decode_record(file).value().value, largest.value);
  EXPECT_EQ(decode_record(encode_record({"k", "", 1, 0})).value().value, "");
}

TEST(FileFormat, EveryCutAndEveryFlippedBitIsFound) {
  const std::string file = encode_record(kRecord);
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(decode_record(file.substr(0, size)).status().code(), Code::kCorrupt) << size;
  }
  EXPECT_FALSE(decode_record(file + "x"));
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(decode_record(flipped).status().code(), Code::kCorrupt) << bit;
  }
}

TEST(FileFormat, GarbageIsToldApart) {
  const auto message = [](std::string_view file) { return std::string(decode_record(file).status().message()); };
  EXPECT_EQ(message(""), "not a directory value: it begins with no header line");
  EXPECT_EQ(message("hello\n"), "not a directory value: it begins with no header line");
  EXPECT_EQ(message("hawser-value 1 x\n"), "not a directory value: its header is malformed");
  EXPECT_EQ(message("hawser-value 1 1 0 0 0 0123456789abcdef\n"),
            "not a directory value: a number in its header is out of bounds");
  EXPECT_EQ(message("hawser-value 1 1 0 1 18446744073709551615 0123456789abcdef\nk"),
            "not a directory value: a number in its header is out of bounds");
  EXPECT_EQ(message("hawser-value 1 1 0 1 5 0123456789abcdef\nk"),
            "not a directory value: it was cut off, or something follows the value");
  EXPECT_EQ(message("hawser-value 1 1 0 1 0 0123456789abcdef\nk"),
            "not a directory value: its checksum does not match");
  EXPECT_EQ(message("hawser-value 1 " + std::string(200, '1') + "\n"),
            "not a directory value: it begins with no header line");
}

TEST(FileFormat, NamesAreSafeAndDistinct) {
  EXPECT_EQ(file_name("hawser/cards/prefill-0"), "hawser%2Fcards%2Fprefill-0");
  EXPECT_EQ(file_name("."), "%2E");
  EXPECT_EQ(file_name(".."), "%2E.");
  EXPECT_EQ(file_name(std::string("a\0%\n\xc3", 5)), "a%00%25%0A%C3");
  std::set<std::string> names;
  std::string key;
  for (int i = 0; i < 1024; ++i) {
    key += '/';
    const std::string name = file_name(key);
    EXPECT_LE(name.size(), 200u);
    EXPECT_EQ(name.find('/'), std::string::npos);
    EXPECT_TRUE(names.insert(name).second);
  }
}

}  // namespace
}  // namespace hawser::directory
