#pragma once

// Vault: the memory that is lent to operations. It stays until the end of the run. When an operation has ended, its
// memory is overwritten at once and must stay so: whoever still reads or writes it will be seen.
//
// Thread rule: one thread. Lifetime: longer than every operation that memory was lent to.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace hawser::worldsim {

struct Loan {
  std::vector<std::byte> bytes;
  std::uint64_t owner = 0;  ///< The operation.
  bool is_back = false;
};

class Vault {
 public:
  Loan& lend(std::uint64_t owner, std::size_t size);
  Loan& lend(std::uint64_t owner, std::vector<std::byte> bytes);
  /// The operation has ended.
  void take_back(Loan& loan);
  /// One that changed after its operation had ended. Null: none did.
  const Loan* first_touched() const;

 private:
  std::deque<Loan> loans_;
};

}  // namespace hawser::worldsim
