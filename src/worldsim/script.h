#pragma once

// Script: which collective the ranks of a world call by each number, what each rank gives to it, and what each must
// get. All of it follows from the world's seed, so ranks need not talk about it, and a judge knows the right bytes.
//
// Values are small integers, so floating point gives the exact result in any order of combination.
//
// Thread rule: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hawser/datatype.h>

#include "schedule/collective.h"

namespace hawser::worldsim {

/// One number of a world's script.
struct Act {
  schedule::Operation what = schedule::Operation::kBarrier;
  DataType type = DataType::kUInt8;
  std::optional<ReduceOp> op;
  std::uint32_t size = 1;  ///< Of the world.
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> counts;  ///< By rank, where each has its own.
  bool reproducible = false;
  std::uint64_t seed = 0;  ///< Of the values.
};

/// Number 0 is the barrier by which a world is entered, and those above `last` are the barriers by which it is left.
Act act_of(std::uint64_t world_seed, std::uint64_t number, std::uint64_t last, std::uint32_t size);
/// The same call with another root, type or operation: what a rank calls that errs.
Act misfit_of(const Act& act);

bool is_rooted(schedule::Operation what);
/// Elements that this rank gives and gets.
std::uint64_t input_count(const Act& act, std::uint32_t rank);
std::uint64_t output_count(const Act& act, std::uint32_t rank);
/// How many elements `from` has for `to` in an all_to_all.
std::uint64_t exchange_count(const Act& act, std::uint32_t from, std::uint32_t to);
/// An all_to_all in which all ranks have as many for each other one: they say so.
bool is_even_exchange(const Act& act);
std::vector<std::byte> input_of(const Act& act, std::uint32_t rank);
std::vector<std::byte> output_of(const Act& act, std::uint32_t rank);
std::string describe(const Act& act);

}  // namespace hawser::worldsim
