#include "worldsim/vault.h"

#include <algorithm>
#include <utility>

namespace hawser::worldsim {
namespace {

std::byte mark_of(std::uint64_t owner) { return static_cast<std::byte>(0x80U | (owner * 37 & 0x7F)); }

}  // namespace

Loan& Vault::lend(std::uint64_t owner, std::size_t size, Lender* lender) {
  return lend(owner, std::vector<std::byte>(size), lender);
}

Loan& Vault::lend(std::uint64_t owner, std::vector<std::byte> bytes, Lender* lender) {
  Loan& loan = loans_.emplace_back();
  loan.owner = owner;
  if (const auto lent = lender == nullptr ? std::nullopt : lender->take(bytes.size())) {
    loan.bytes = *lent;
    loan.memory = lender->memory();
    std::ranges::copy(bytes, loan.bytes.begin());
  } else {
    loan.own = std::move(bytes);
    loan.bytes = loan.own;
  }
  return loan;
}

void Vault::take_back(Loan& loan) {
  loan.is_back = true;
  std::ranges::fill(loan.bytes, mark_of(loan.owner));
}

const Loan* Vault::first_touched() const {
  for (const Loan& loan : loans_) {
    if (!loan.is_back) continue;
    const std::byte mark = mark_of(loan.owner);
    const bool is_whole = std::ranges::all_of(loan.bytes, [mark](std::byte each) { return each == mark; });
    if (!is_whole) return &loan;
  }
  return nullptr;
}

}  // namespace hawser::worldsim
