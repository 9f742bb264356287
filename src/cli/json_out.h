#pragma once

// The output of --json: one object per run (one per line where a command goes on), with a "schema" that
// names its shape, such as "hawser.info/1". Fields are only added within one version of a schema.

#include <string>
#include <string_view>

#include <hawser/status.h>
#include <nlohmann/json.hpp>

namespace hawser::cli {

using Json = nlohmann::ordered_json;  // Keys keep the order in which they were written.

/// An object with its schema: {"schema": "hawser.<command>/1"}, with _ for blanks in the command.
Json document(std::string_view command);

/// Code, message and all that stands beside them, with the chain of causes; null when good.
Json to_json(const Status& status);
/// The reverse, as far as a Status can be made again: code, message, peer, advice.
Status status_from(const Json& json);

/// Pretty-printed to stdout with a newline at the end.
void print(const Json& json);
/// On one line, flushed: for commands that go on.
void print_line(const Json& json);

/// Tells of a failure: on stderr, and with `as_json` as an object on stdout too. Returns the exit code.
int fail(std::string_view command, bool as_json, const Status& status);

}  // namespace hawser::cli
