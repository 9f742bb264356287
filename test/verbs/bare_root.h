#pragma once

// A process in a root of its own that has /proc, /dev, /tmp and nothing else: no library can be opened there that is
// not loaded yet, and /sys is what the test puts into it.
//
// Thread rule: the caller has one thread. Lifetime: the child and its mounts end with the call.

#include <functional>
#include <string>

namespace hawser::bare_root {

/// What came of it: the text that `body` returned (empty: good), or why there can be no such process here.
struct Outcome {
  std::string skipped, failure;
};

/// In a child: `before`, where the old root is still there (what it returns is why the test is skipped), then `furnish`
/// with the new root's folder, then `body` in it. An exception is a failure with its text.
Outcome run(const std::function<void(const std::string& root)>& furnish, const std::function<std::string()>& body,
            const std::function<std::string()>& before = {});

}  // namespace hawser::bare_root
