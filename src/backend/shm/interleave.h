#pragma once

// Interleave: runs small concurrent programs under every interleaving of their memory operations, with a store buffer
// per thread as x86 has it (a later load may overtake an earlier store). For tests only.
//
// A thread is a function that is deterministic in what it loads. Instead of keeping its stack, the explorer runs it
// again from its beginning with the answers it got so far; at its next operation it is stopped by an exception. States
// seen before are not explored again, so programs must be short and may wait on bells but not spin.
//
// Thread rule: one explorer per thread at a time.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hawser::backend::shm::interleave {

enum class Op : std::uint8_t { kLoad, kStore, kExchange, kFence, kMembarrier, kSignal, kWait };

struct Step {
  Op op = Op::kLoad;
  std::size_t cell = 0;
  std::uint64_t value = 0;
};

/// One thread's run: answers known operations and stops it at the first new one.
class Replay {
 public:
  explicit Replay(const std::vector<std::uint64_t>& answers) : answers_(answers) { current() = this; }
  ~Replay() { current() = nullptr; }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  struct Stop {};
  static std::uint64_t perform(Step step) { return current()->answer(step); }
  /// Here `digest` tells all that the program still remembers of its earlier loads: runs that come here with equal
  /// digests go on alike and need not be told apart.
  static void phase(std::uint64_t digest) {
    current()->digest_ = digest;
    current()->phase_at_ = current()->at_;
  }
  /// Stores that are not ordered with any others yet.
  static std::vector<Step>& unordered() { return current()->unordered_; }
  /// A program found something that must not be.
  static void fail(std::string text) { current()->failure_ = std::move(text); }

  const Step& next() const { return next_; }
  const std::string& failure() const { return failure_; }
  std::uint64_t digest() const { return digest_; }
  std::size_t phase_at() const { return phase_at_; }

 private:
  static Replay*& current() {
    static thread_local Replay* replay = nullptr;
    return replay;
  }
  std::uint64_t answer(Step step) {
    if (at_ < answers_.size()) return answers_[at_++];
    next_ = step;
    throw Stop{};
  }
  const std::vector<std::uint64_t>& answers_;
  std::size_t at_ = 0;
  std::size_t phase_at_ = 0;
  std::uint64_t digest_ = 0;
  Step next_;
  std::vector<Step> unordered_;
  std::string failure_;
};

template <typename T>
class Word {
 public:
  T load(std::memory_order) const { return static_cast<T>(Replay::perform({Op::kLoad, cell, 0})); }
  void store(T value, std::memory_order) { Replay::perform({Op::kStore, cell, value}); }
  T exchange(T value, std::memory_order) { return static_cast<T>(Replay::perform({Op::kExchange, cell, value})); }
  std::size_t cell = 0;
};

/// The machine for the templates of ring.h and pin.h.
struct Machine {
  using Word = interleave::Word<std::uint64_t>;
  using GateWord = interleave::Word<std::uint32_t>;
  static void fence() { Replay::perform({Op::kFence, 0, 0}); }
  static void light_fence() {}

  static constexpr std::size_t kRunMin = 512;
  static constexpr std::size_t kAsksMin = SIZE_MAX;
  /// Whole words only.
  static bool copy_in(Word* words, std::size_t offset, const std::byte* from, std::size_t size, bool) {
    for (std::size_t i = 0; i < size; i += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, from + i, 8);
      words[(offset + i) / 8].store(value, std::memory_order_relaxed);
    }
    return false;
  }
  static void stream_fence() {}
  static void copy_out(const Word* words, std::size_t offset, std::byte* to, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 8) {
      const std::uint64_t value = words[(offset + i) / 8].load(std::memory_order_relaxed);
      std::memcpy(to + i, &value, 8);
    }
  }
};

/// The same where a record of two lines is a run.
struct RunMachine : Machine {
  static constexpr std::size_t kRunMin = 64;
};

/// The same, but a thread that copies a run stores its bytes only at the next stream_fence(): the latest time that a
/// processor may choose for streamed stores.
struct StreamMachine : RunMachine {
  static constexpr std::size_t kAsksMin = 0;
  static bool copy_in(Word* words, std::size_t offset, const std::byte* from, std::size_t size, bool) {
    for (std::size_t i = 0; i < size; i += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, from + i, 8);
      Replay::unordered().push_back({Op::kStore, words[(offset + i) / 8].cell, value});
    }
    return true;
  }
  static void stream_fence() {
    for (const Step& store : Replay::unordered()) Replay::perform(store);
    Replay::unordered().clear();
  }
};

/// As StreamMachine, but without that fence: the explorer must find what goes wrong then.
struct UnfencedStreamMachine : StreamMachine {
  static void stream_fence() {}
};

/// As Machine, but without fences: the explorer must find what goes wrong then.
struct UnfencedMachine : Machine {
  static void fence() {}
};

inline void membarrier() { Replay::perform({Op::kMembarrier, 0, 0}); }
inline void ring_bell(std::size_t bell) { Replay::perform({Op::kSignal, bell, 0}); }
/// Stops the thread until the bell rang.
inline void wait_bell(std::size_t bell) { Replay::perform({Op::kWait, bell, 0}); }

class Explorer {
 public:
  using Program = std::function<void()>;

  Explorer(std::vector<std::uint64_t> cells, std::size_t bells, std::vector<Program> programs)
      : programs_(std::move(programs)) {
    start_.cells = std::move(cells);
    start_.bells.resize(bells);
    start_.threads.resize(programs_.size());
  }

  /// Empty when no interleaving fails; else what failed first.
  std::string run() {
    for (std::size_t i = 0; i < programs_.size(); ++i) advance(start_, i);
    explore(start_);
    return failure_;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  struct Thread {
    std::vector<std::uint64_t> answers;
    std::deque<std::pair<std::size_t, std::uint64_t>> buffer;  ///< Stores that the others do not see yet.
    std::uint64_t digest = 0;
    std::size_t phase_at = 0;  ///< Answers before it are told by the digest.
    Step next;
    bool done = false;
  };
  struct State {
    std::vector<std::uint64_t> cells;
    std::vector<std::uint64_t> bells;
    std::vector<Thread> threads;
  };

  void explore(const State& state) {
    if (!failure_.empty() || !seen_.insert(key(state)).second) return;
    // What only the thread itself can notice need not be tried in every order.
    for (std::size_t i = 0; i < state.threads.size(); ++i) {
      if (state.threads[i].done || state.threads[i].next.op != Op::kStore) continue;
      State stepped = state;
      step(stepped, i);
      return explore(stepped);
    }
    bool stuck = true;
    bool all_done = true;
    for (std::size_t i = 0; i < state.threads.size(); ++i) {
      const Thread& thread = state.threads[i];
      all_done = all_done && thread.done;
      if (!thread.buffer.empty()) {
        State flushed = state;
        flush_one(flushed, i);
        explore(flushed);
        stuck = false;
      }
      if (thread.done || !is_enabled(state, thread)) continue;
      State stepped = state;
      step(stepped, i);
      explore(stepped);
      stuck = false;
    }
    if (stuck && !all_done && failure_.empty()) failure_ = "all threads wait for each other";
  }

  static bool is_enabled(const State& state, const Thread& thread) {
    switch (thread.next.op) {
      case Op::kExchange:
      case Op::kFence:
      case Op::kSignal:
        return thread.buffer.empty();
      case Op::kWait:
        return thread.buffer.empty() && state.bells[thread.next.cell] != 0;
      default:
        return true;
    }
  }

  void step(State& state, std::size_t index) {
    Thread& thread = state.threads[index];
    const Step next = thread.next;
    std::uint64_t answer = 0;
    switch (next.op) {
      case Op::kLoad:
        answer = load(state, thread, next.cell);
        break;
      case Op::kStore:
        thread.buffer.emplace_back(next.cell, next.value);
        break;
      case Op::kExchange:
        answer = std::exchange(state.cells[next.cell], next.value);
        break;
      case Op::kFence:
        break;
      case Op::kMembarrier:
        for (std::size_t i = 0; i < state.threads.size(); ++i) {
          while (!state.threads[i].buffer.empty()) flush_one(state, i);
        }
        break;
      case Op::kSignal:
        state.bells[next.cell] = 1;
        break;
      case Op::kWait:
        state.bells[next.cell] = 0;
        break;
    }
    thread.answers.push_back(answer);
    advance(state, index);
  }

  static std::uint64_t load(const State& state, const Thread& thread, std::size_t cell) {
    for (auto it = thread.buffer.rbegin(); it != thread.buffer.rend(); ++it) {
      if (it->first == cell) return it->second;
    }
    return state.cells[cell];
  }

  static void flush_one(State& state, std::size_t index) {
    auto& buffer = state.threads[index].buffer;
    state.cells[buffer.front().first] = buffer.front().second;
    buffer.pop_front();
  }

  /// Runs the thread up to its next operation.
  void advance(State& state, std::size_t index) {
    Thread& thread = state.threads[index];
    Replay replay(thread.answers);
    try {
      programs_[index]();
      thread.done = true;
    } catch (const Replay::Stop&) {
      thread.next = replay.next();
    }
    thread.digest = replay.digest();
    thread.phase_at = replay.phase_at();
    if (!replay.failure().empty()) failure_ = replay.failure();
  }

  using Key = std::pair<std::uint64_t, std::uint64_t>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return static_cast<std::size_t>(key.first); }
  };

  /// 128 bits of hash: two states are taken for one with negligible probability.
  static Key key(const State& state) {
    Key hash{0x9e3779b97f4a7c15U, 0xc2b2ae3d27d4eb4fU};
    const auto put = [&hash](std::uint64_t value) {
      hash.first = (hash.first ^ value) * 0xbf58476d1ce4e5b9U;
      hash.first ^= hash.first >> 31;
      hash.second = (hash.second + value) * 0x94d049bb133111ebU;
      hash.second ^= hash.second >> 29;
    };
    for (const std::uint64_t cell : state.cells) put(cell);
    for (const std::uint64_t bell : state.bells) put(bell);
    for (const Thread& thread : state.threads) {
      put(thread.digest);
      put(thread.answers.size() - thread.phase_at);
      for (std::size_t i = thread.phase_at; i < thread.answers.size(); ++i) put(thread.answers[i]);
      put(thread.done);
      put(thread.buffer.size());
      for (const auto& [cell, value] : thread.buffer) {
        put(cell);
        put(value);
      }
    }
    return hash;
  }

  std::vector<Program> programs_;
  State start_;
  std::unordered_set<Key, KeyHash> seen_;
  std::string failure_;
};

}  // namespace hawser::backend::shm::interleave
