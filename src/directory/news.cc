#include "directory/news.h"

HAWSER_NAMESPACE_BEGIN

NewsFd news_of(Directory& directory) {
  DirectoryRinger* const ringer = dynamic_cast<DirectoryRinger*>(&directory);
  return ringer == nullptr ? NewsFd() : ringer->listen();
}

HAWSER_NAMESPACE_END
