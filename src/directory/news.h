#pragma once

// NewsFd: a descriptor that is readable once a directory has answered or told something, for event loops. It may do
// so for what others asked: look at what is waited for, then wait again.
//
// Thread rule: any thread. Lifetime: may outlive its directory, which then rings it no more.

#include <memory>

#include <hawser/directory.h>

HAWSER_NAMESPACE_BEGIN

struct NewsFd {
  int fd = -1;                  ///< -1: nobody rings, so look from time to time. Else an eventfd.
  std::shared_ptr<void> owner;  ///< Closes it.
};
/// A descriptor of the caller's own. Events from now on ring it.
HAWSER_API NewsFd news_of(Directory& directory);

/// What `news_of` asks: a directory that can ring is one of these, too.
class DirectoryRinger {
 public:
  virtual ~DirectoryRinger() = default;
  virtual NewsFd listen() = 0;
};

HAWSER_NAMESPACE_END
