// Reductions that the caller defines, over worlds of one host and of several: those whose order of ranks shows, and
// those whose elements are none of the types.

#include <gtest/gtest.h>

#include <hawser/compress.h>
#include <hawser/world.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "local_worlds.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

/// A matrix of two by two: products of them are associative and do not commute. Elements wrap around.
struct Matrix {
  std::array<std::uint32_t, 4> at = {};
  friend bool operator==(const Matrix&, const Matrix&) = default;
};

Matrix times(const Matrix& a, const Matrix& b) {
  return {{a.at[0] * b.at[0] + a.at[1] * b.at[2], a.at[0] * b.at[1] + a.at[1] * b.at[3],
           a.at[2] * b.at[0] + a.at[3] * b.at[2], a.at[2] * b.at[1] + a.at[3] * b.at[3]}};
}

Matrix matrix(std::size_t rank, std::size_t i) {
  const auto number = static_cast<std::uint32_t>(rank * 1009 + i * 31);
  return {{number + 1, number % 7 + 2, number % 5 + 3, 2 * number + 1}};
}

/// Of ranks 0 to before `end`.
Matrix product(std::size_t end, std::size_t i) {
  Matrix all = matrix(0, i);
  for (std::size_t rank = 1; rank < end; ++rank) all = times(all, matrix(rank, i));
  return all;
}

Reducer products(std::string_view name = "matrix product") {
  return {.combine =
              [](void* out, const void* first, const void* second, std::size_t count) {
                for (std::size_t i = 0; i < count; ++i) {
                  Matrix a, b;
                  std::memcpy(&a, static_cast<const Matrix*>(first) + i, sizeof a);
                  std::memcpy(&b, static_cast<const Matrix*>(second) + i, sizeof b);
                  const Matrix c = times(a, b);
                  std::memcpy(static_cast<Matrix*>(out) + i, &c, sizeof c);
                }
              },
          .name = name,
          .element_bytes = sizeof(Matrix)};
}

/// The larger number, and of equal ones the lower place.
struct Best {
  double number = 0;
  std::uint64_t place = 0;
};

Reducer best() {
  return {.combine =
              [](void* out, const void* first, const void* second, std::size_t count) {
                for (std::size_t i = 0; i < count; ++i) {
                  Best a, b;
                  std::memcpy(&a, static_cast<const Best*>(first) + i, sizeof a);
                  std::memcpy(&b, static_cast<const Best*>(second) + i, sizeof b);
                  const bool is_first = a.number > b.number || (a.number == b.number && a.place < b.place);
                  std::memcpy(static_cast<Best*>(out) + i, is_first ? &a : &b, sizeof a);
                }
              },
          .name = "best",
          .commutes = true,
          .element_bytes = sizeof(Best)};
}

class Reducers : public LocalWorlds {
 protected:
  static constexpr DataType kType = DataType::kUInt8;  // Counts are of matrices.
  static constexpr ReduceOp kOp = ReduceOp::kSum;      // It counts for nothing.

  void check(std::size_t rank, std::size_t count, bool reproducible) {
    World& world = worlds_[rank];
    const std::size_t size = worlds_.size();
    const CollectiveOptions options = {.timeout = 30s, .reproducible = reproducible, .reducer = products()};
    std::vector<Matrix> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = matrix(rank, i);
    const auto must = [&](const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); };
    must(world.all_reduce(in.data(), out.data(), count, kType, kOp, options));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], product(size, i)) << i;
    const auto root = static_cast<std::uint32_t>(count % size);
    must(world.reduce(in.data(), out.data(), count, kType, kOp, root, options));
    for (std::size_t i = 0; rank == root && i < count; ++i) ASSERT_EQ(out[i], product(size, i)) << i;
    must(world.scan(in.data(), out.data(), count, kType, kOp, false, options));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], product(rank + 1, i)) << i;
    must(world.scan(in.data(), out.data(), count, kType, kOp, true, options));
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], product(std::max<std::size_t>(rank, 1), i)) << i;
    std::vector<std::uint64_t> counts(size, count / size);
    counts[0] += count % size;
    std::vector<Matrix> block(counts[rank]);
    must(world.reduce_scatter(in.data(), block.data(), counts, kType, kOp, options));
    const std::size_t begin = rank == 0 ? 0 : counts[0] + (rank - 1) * counts[1];
    for (std::size_t i = 0; i < block.size(); ++i) ASSERT_EQ(block[i], product(size, begin + i)) << i;
    std::vector<Best> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = {static_cast<double>((i * 7 + rank * 5) % 11), rank};
    must(world.all_reduce(numbers.data(), numbers.data(), count, kType, kOp,
                          {.timeout = 30s, .reproducible = reproducible, .reducer = best()}));
    for (std::size_t i = 0; i < count; ++i) {
      Best right = {-1, 0};
      for (std::size_t of = 0; of < size; ++of) {
        const auto number = static_cast<double>((i * 7 + of * 5) % 11);
        if (number > right.number) right = {number, of};
      }
      ASSERT_EQ(numbers[i].number, right.number) << i;
      ASSERT_EQ(numbers[i].place, right.place) << i;
    }
  }
  void check_all() {
    for (int round = 0; round < 20; ++round) {  // By messages first, then on boards.
      for (const std::size_t count : {1U, 7U, 300U, 20'000U}) {
        if (count > 1000 && round % 10 != 9) continue;
        on_all([&](std::size_t rank) { check(rank, count, round % 5 == 4); });
        if (HasFatalFailure()) return;
      }
    }
  }
};

TEST_F(Reducers, CombineInTheOrderOfRanks) {
  for (const std::uint32_t size : {1U, 2U, 3U, 5U, 8U}) {
    open(size);
    check_all();
    if (HasFatalFailure()) return;
  }
}

TEST_F(Reducers, CombineInTheOrderOfRanksOnSeveralHosts) {
  for (const auto& hosts : {std::vector<std::uint64_t>{0, 0, 1, 1}, std::vector<std::uint64_t>{0, 1, 0, 2, 0}}) {
    open_on(hosts);
    check_all();
    if (HasFatalFailure()) return;
  }
}

TEST_F(Reducers, AreFoundOutWhereTheyDiffer) {
  open(3);
  const std::array names = {"one", "one", "another"};
  std::vector<Matrix> data(3);
  std::vector<Request> requests;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    requests.push_back(worlds_[rank].iall_reduce(&data[rank], &data[rank], 1, kType, kOp,
                                                 {.timeout = 30s, .reducer = products(names[rank])}));
  }
  for (Request& request : requests) EXPECT_EQ(request.wait(30s).code(), Code::kInvalid);
}

TEST_F(Reducers, AreForWhatCombines) {
  open(2);
  Matrix one;
  const auto code = [&](const Status& status) { return std::pair(status.code(), status.to_string()); };
  EXPECT_EQ(code(worlds_[0].broadcast(&one, 1, kType, 0, {.reducer = products()})).first, Code::kInvalid);
  EXPECT_EQ(code(worlds_[0].all_reduce(&one, &one, 1, DataType::kFloat32, kOp,
                                       {.compress = Compressor::int8(), .reducer = products()}))
                .first,
            Code::kInvalid);
  Reducer large = products();
  large.element_bytes = kReducerElementMax + 1;
  const auto [refused, why] = code(worlds_[0].all_reduce(&one, &one, 1, kType, kOp, {.reducer = large}));
  EXPECT_EQ(refused, Code::kInvalid);
  EXPECT_NE(why.find("1024"), std::string::npos) << why;
  const Tensor tensor{&one, 1};
  EXPECT_EQ(worlds_[0].all_reduce_bucketed({&tensor, 1}, kType, kOp, kBucketBytes, {.reducer = products()}).code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace hawser
