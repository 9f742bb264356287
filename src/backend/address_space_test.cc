#include "backend/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "backend/test_pages.h"

namespace hawser::backend {
namespace {

constexpr std::string_view kSmaps =
    "00400000-00500000 r-xp 00000000 08:01 77                         /usr/bin/a program\n"
    "Size:               1024 kB\n"
    "VmFlags: rd ex mr mw me\n"
    "00500000-00600000 rw-p 00000000 00:00 0                          [heap]\n"
    "AnonHugePages:         0 kB\n"
    "VmFlags: rd wr mr mw me ac\n"
    "00600000-00700000 rw-s 00003000 00:01 4711                       /memfd:x (deleted)\n"
    "VmFlags: rd wr sh mr mw me ms\n"
    "00700000-00800000 rw-p 00000000 00:00 0\n"
    "VmFlags: rd wr mr mw me lo ac\n";

std::string refusal(std::string_view access, std::string_view name, std::string_view flags, std::uint64_t inode = 0) {
  const AddressRange range{0x1000, 0x3000};
  MappedArea area;
  area.range = range;
  area.access = access;
  area.name = name;
  area.flags = flags;
  area.inode = inode;
  return check_movable({area}, range).to_string();
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(AddressSpace, AreasAreCutToTheRange) {
  const auto areas = parse_areas(kSmaps, {0x580000, 0x680000});
  ASSERT_EQ(areas.size(), 2u);
  EXPECT_EQ(areas[0].range, (AddressRange{0x580000, 0x600000}));
  EXPECT_EQ(areas[0].name, "[heap]");
  EXPECT_EQ(areas[0].flags, " rd wr mr mw me ac");
  EXPECT_EQ(areas[1].range, (AddressRange{0x600000, 0x680000}));
  EXPECT_EQ(areas[1].offset, 0x3000u);
  EXPECT_EQ(areas[1].inode, 4711u);
  EXPECT_EQ(areas[1].access, "rw-s");
  EXPECT_EQ(parse_areas(kSmaps, {0x450000, 0x500000})[0].offset, 0x50000u);
  EXPECT_TRUE(parse_areas(kSmaps, {0x900000, 0xa00000}).empty());
  EXPECT_TRUE(parse_areas("no such file\n\n-\n12-\n", {0, 0x1000}).empty());
}

TEST(AddressSpace, PlainPrivateMemoryIsMovable) {
  EXPECT_EQ(refusal("rw-p", "", "rd wr mr mw me ac sd hg nh nr"), Status().to_string());
  EXPECT_EQ(refusal("rw-p", "[heap]", "rd wr"), Status().to_string());
  EXPECT_EQ(refusal("rw-p", "[anon: glibc: malloc]", "rd wr"), Status().to_string());
}

TEST(AddressSpace, WhatIsNotOursToMoveIsNamed) {
  EXPECT_TRUE(says(refusal("rw-s", "", "rd wr sh"), "is shared"));
  EXPECT_TRUE(says(refusal("rw-p", "/data/model", "rd wr", 5), "is mapped from a file: /data/model"));
  EXPECT_TRUE(says(refusal("r--p", "", "rd"), "cannot be read and written"));
  EXPECT_TRUE(says(refusal("rwxp", "", "rd wr ex"), "can be executed"));
  EXPECT_TRUE(says(refusal("rw-p", "[stack]", "rd wr gd"), "belongs to the system: [stack]"));
  EXPECT_TRUE(says(refusal("", "", ""), "is shared"));
  for (const auto& [flag, meaning] :
       std::initializer_list<std::pair<const char*, const char*>>{{"lo", "mlock"},
                                                                  {"ht", "huge pages"},
                                                                  {"dc", "MADV_DONTFORK"},
                                                                  {"wf", "MADV_WIPEONFORK"},
                                                                  {"dd", "core dumps"},
                                                                  {"gd", "stack"},
                                                                  {"pf", "device"},
                                                                  {"io", "device"},
                                                                  {"um", "userfaultfd"},
                                                                  {"uw", "userfaultfd"},
                                                                  {"ui", "userfaultfd"},
                                                                  {"mt", "tagged"},
                                                                  {"ss", "shadow"},
                                                                  {"sl", "sealed"}}) {
    EXPECT_TRUE(says(refusal("rw-p", "", std::string("rd wr ") + flag + " ac"), meaning)) << flag;
  }
}

TEST(AddressSpace, HolesAreFound) {
  const auto movable = [](AddressRange range) { return check_movable(parse_areas(kSmaps, range), range).to_string(); };
  EXPECT_TRUE(says(movable({0x580000, 0x680000}), "0x600000 is shared"));
  EXPECT_TRUE(says(movable({0x900000, 0x901000}), "nothing is mapped at 0x900000"));
  EXPECT_TRUE(says(movable({0x3ff000, 0x401000}), "nothing is mapped at 0x3ff000"));
  EXPECT_TRUE(says(movable({0x700000, 0x701000}), "mlock"));
}

TEST(AddressSpace, TellsOfThisProcess) {
  constexpr std::size_t kSize = 1 << 20;
  void* const at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const AddressRange range{begin, begin + kSize};
  const auto areas = mapped_areas(range, AreaDetail::kFlags).value();
  ASSERT_FALSE(areas.empty());
  EXPECT_TRUE(check_movable(areas, range).ok()) << check_movable(areas, range).to_string();
  ASSERT_EQ(::mprotect(static_cast<std::byte*>(at) + kSize / 2, kSize / 2, PROT_READ), 0);
  const auto halves = mapped_areas(range, AreaDetail::kPlain).value();
  EXPECT_EQ(halves.back().access, "r--p");
  EXPECT_EQ(halves.back().range.begin, begin + kSize / 2);
  ::munmap(at, kSize);
}

TEST(AddressSpace, ASurveyReadsOnceForAllRanges) {
  const TestPages pages(16);
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.bytes().data());
  const std::size_t page = pages.bytes().size() / 16;
  // A right that is missing is seen everywhere; an emulator forgets madvise, a sanitizer mlock.
  ASSERT_EQ(::mprotect(pages.bytes().data() + 3 * page, page, PROT_READ), 0);
  const auto reads = [] { return AreaSurvey::reads(AreaDetail::kFlags); };
  const std::uint64_t before = reads();
  {
    const AreaSurvey survey(AreaDetail::kFlags);
    for (std::size_t i = 0; i < 16; ++i) {
      const AreaSurvey inner(AreaDetail::kFlags);  // The outer one serves.
      const AddressRange range{begin + i * page, begin + (i + 1) * page};
      const auto areas = mapped_areas(range, AreaDetail::kFlags);
      ASSERT_TRUE(areas) << areas.error().to_string();
      EXPECT_EQ(check_movable(*areas, range).ok(), i != 3) << i;
    }
    EXPECT_EQ(reads(), before + 1);
    ASSERT_EQ(::mprotect(pages.bytes().data(), page, PROT_READ), 0);
    const AddressRange first{begin, begin + page};
    EXPECT_EQ(mapped_areas(first, AreaDetail::kFlags).value().front().access, "rw-p") << "as it was";
    EXPECT_EQ(mapped_areas(first, AreaDetail::kPlain).value().front().access, "r--p") << "another detail is looked at";
    ASSERT_EQ(::mprotect(pages.bytes().data(), page, PROT_READ | PROT_WRITE), 0);
  }
  ASSERT_EQ(::mprotect(pages.bytes().data() + 3 * page, page, PROT_READ | PROT_WRITE), 0);
  const AddressRange range{begin, begin + 16 * page};
  EXPECT_TRUE(check_movable(mapped_areas(range, AreaDetail::kFlags).value(), range).ok()) << "it is over";
  EXPECT_EQ(reads(), before + 2);
}

}  // namespace
}  // namespace hawser::backend
