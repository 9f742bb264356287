#pragma once

// Pages of a range that is about to be registered, made present by several threads.
//
// Registration pins every page. What takes long is that pages which nobody touched yet must be found and zeroed, by one
// thread, inside the kernel's registration; made present first, in parallel, they are only pinned there (measured in
// NOTES.md). One registration with one key stays one: splitting it would cost every later work request a look-up.
//
// Thread rule: any thread; the threads it starts have ended when it returns.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hawser::backend::verbs {

/// Below this, starting threads costs more than it saves.
inline constexpr std::size_t kTouchBytesMin = 64u << 20;
/// More threads than these only queue for the kernel's locks of the address space.
inline constexpr unsigned kTouchThreadsMax = 8;

/// A page-aligned part of a range.
struct PageSlice {
  std::uintptr_t address = 0;
  std::size_t size = 0;
  friend bool operator==(const PageSlice&, const PageSlice&) = default;
};

/// The pages of the range in at most `count` nearly equal slices, cut at multiples of 2 MiB so that no huge page is
/// shared; nothing when it is smaller than kTouchBytesMin.
std::vector<PageSlice> touch_slices(std::uintptr_t address, std::size_t size, unsigned count);

/// Calls `job` with each number below `count`, by at most `threads` threads of which the caller's is one. They have
/// ended when it returns.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& job);

/// Makes the pages present and writable where they may be, by `threads` threads; contents stay. What cannot be made
/// present is left to the registration, which reports it. Does nothing below kTouchBytesMin.
void populate_pages(std::uintptr_t address, std::size_t size, unsigned threads);

/// The same where it pays: half of the CPUs, if they are four at least, and only when pages are missing.
void touch_pages(std::uintptr_t address, std::size_t size, unsigned threads_max = kTouchThreadsMax);

/// The NUMA node that the pages of the range lie on, by a sample of them; -1: on several, nobody touched them yet, or
/// the kernel does not tell (some containers forbid asking).
int numa_node_of(std::uintptr_t address, std::size_t size);

/// Whether nearly all pages of the range are present, by a sample of them.
bool mostly_present(std::uintptr_t address, std::size_t size);

}  // namespace hawser::backend::verbs
