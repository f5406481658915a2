// A private file (private_file.h) whose content is compressed and sealed with its length and
// checksum: what was cut, damaged, or is of another kind, is as if it were not there.

#ifndef MEMTRACE_BASE_SEALED_FILE_H_
#define MEMTRACE_BASE_SEALED_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace memtrace::base {

inline constexpr uint64_t kMostSealedBytes = uint64_t{64} << 20;  // of a file, as stored
inline constexpr uint64_t kMostContentBytes = uint64_t{1} << 30;  // the same, decompressed

// `magic`: eight characters, the kind and version of the content. False: there is no such content.
bool ReadSealedFile(const std::string& path, std::string_view magic, std::string* content);

// False: it is too large, or the file could not be written.
bool WriteSealedFile(const std::string& path, std::string_view magic, std::string_view content);

}  // namespace memtrace::base

#endif  // MEMTRACE_BASE_SEALED_FILE_H_
