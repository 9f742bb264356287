#pragma once

// Vault: the memory that is lent to operations. It stays until the end of the run. When an operation has ended, its
// memory is overwritten at once and must stay so: whoever still reads or writes it will be seen.
//
// Thread rule: one thread. Lifetime: longer than every operation that memory was lent to.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "worldsim/lender.h"

namespace hawser::worldsim {

struct Loan {
  std::span<std::byte> bytes;  ///< In `own`, or in what a lender gave.
  std::vector<std::byte> own;
  std::shared_ptr<const void> memory;
  std::uint64_t owner = 0;  ///< The operation.
  bool is_back = false;
};

class Vault {
 public:
  /// `lender`: whose memory it is, as long as there is some. Null: none's.
  Loan& lend(std::uint64_t owner, std::size_t size, Lender* lender = nullptr);
  Loan& lend(std::uint64_t owner, std::vector<std::byte> bytes, Lender* lender = nullptr);
  /// The operation has ended.
  void take_back(Loan& loan);
  /// One that changed after its operation had ended. Null: none did.
  const Loan* first_touched() const;

 private:
  std::deque<Loan> loans_;
};

}  // namespace hawser::worldsim
