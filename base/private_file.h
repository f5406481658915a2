// Files of a cache: of this user and nobody else's business.
//
// Written whole or not at all, under a name of their own and then renamed: whoever reads has the
// old one or the new one, and of several writers the last one stays. Never an error to a user:
// what cannot be done is not done.

#ifndef MEMTRACE_BASE_PRIVATE_FILE_H_
#define MEMTRACE_BASE_PRIVATE_FILE_H_

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace memtrace::base {

// $XDG_CACHE_HOME/memtrace, else ~/.cache/memtrace; empty: neither variable is a path.
std::string UserCacheDirectory();

// Makes the directory and its parents, for this user only. True: it is there.
bool MakePrivateDirectory(const std::string& path);

// A regular file of this user, not behind a symbolic link, and of at most `most_bytes`. Its time
// of modification is that of its last use: set to now when it is older than `touch_after` seconds;
// 0: left alone.
bool ReadPrivateFile(const std::string& path, uint64_t most_bytes, time_t touch_after,
                     std::string* bytes);

// Writes the file with mode 0600.
bool WritePrivateFile(const std::string& path, std::string_view bytes);

// One kind of them: how their names end, and the eight characters they begin with, of which the
// first six are the same in every version.
struct PrivateKind {
  const char* suffix;
  std::string_view magic;
};

// Whether it is a regular file of that kind, of any version, by what it begins with.
bool IsOfKind(const std::string& path, const PrivateKind& kind);

// Removes the files of a kind that were used least recently, when all of it in the directory are
// more than `most_bytes`, and what killed writers have left. `kept` stays, and so does every file
// of another kind: a user may have chosen a directory that holds what is dear to him.
void TrimPrivateDirectory(const std::string& directory, const PrivateKind& kind,
                          uint64_t most_bytes, const std::string& kept);

}  // namespace memtrace::base

#endif  // MEMTRACE_BASE_PRIVATE_FILE_H_
