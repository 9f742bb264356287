#pragma once

// Objects of Python's that C++ kept and needs no more, let go of without waiting for the global lock where they were
// kept: the thread that runs an agent must answer its peers while a long call of some other thread holds the lock.
//
// Thread rule: `later` is for any thread, `now` for one that holds the lock. Each extension module has one list; a
// forked child begins with an empty one and leaves its parent's alone.

#include <Python.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "api/gil.h"
#include "base/thread_annotations.h"

namespace hawser::api::python {

class LetGo {
 public:
  /// Takes over one reference.
  static void later(PyObject* object) {
    List& list = of_module();
    const std::lock_guard<std::mutex> lock(list.mutex);
    list.due.push_back(object);
    list.count.store(list.due.size(), std::memory_order_release);
    if (!list.has_thread) list.has_thread = start(list);
    list.more.notify_one();
  }

  /// A caller that sees an operation's end owns the memory again: what the operation kept goes now.
  static void now() {
    List& list = of_module();
    while (PyObject* object = list.take()) Py_DECREF(object);  // May run Python code, and so come back here.
  }

 private:
  struct List {
    PyObject* take() {
      if (count.load(std::memory_order_acquire) == 0) return nullptr;
      const std::lock_guard<std::mutex> lock(mutex);
      if (due.empty()) return nullptr;
      PyObject* const first = due.front();
      due.pop_front();
      count.store(due.size(), std::memory_order_release);
      return first;
    }

    std::mutex mutex;
    std::condition_variable more;
    std::deque<PyObject*> due;
    std::atomic<std::size_t> count{0};
    bool has_thread = false;
  };

  static void lock_place() HAWSER_NO_THREAD_SAFETY_ANALYSIS { place()->mutex.lock(); }
  static void unlock_place() HAWSER_NO_THREAD_SAFETY_ANALYSIS { place()->mutex.unlock(); }
  static List*& place() {
    static List* one = [] {
      ::pthread_atfork(lock_place, unlock_place, [] { place() = new List; });
      return new List;  // Never destroyed: its thread may look at it to the very end.
    }();
    return one;
  }
  static List& of_module() { return *place(); }

  /// False: no thread can be had now, and who sees an end lets go.
  static bool start(List& list) {
    try {
      std::thread([&list] { run(list); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  static void run(List& list) {
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(list.mutex);
        list.more.wait(lock, [&list] { return !list.due.empty(); });
      }
      const Inside inside;
      if (!inside.granted()) return;  // The interpreter ends, and nothing is let go any more.
      now();
    }
  }
};

}  // namespace hawser::api::python
