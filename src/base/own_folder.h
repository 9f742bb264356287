#pragma once

// own_folder: where the file lies that this code is in: libhawser.so, or a program that holds the code itself. What a
// package brings along (see HAWSER_NGTCP2_BUNDLED) is found from there.
//
// Thread rule: any thread.

#include <string>

namespace hawser::base {

/// Without a slash at its end, links resolved; empty where it cannot be told. The file must not have moved since it was
/// loaded. May block for the file system.
std::string own_folder();

}  // namespace hawser::base
