// What the name of a program may take of a trace file's name, for the library and
// for `memtrace run`.
//
// Pure, any thread.

#ifndef MEMTRACE_FORMAT_FILE_NAME_H_
#define MEMTRACE_FORMAT_FILE_NAME_H_

#include <cstddef>
#include <string_view>

namespace memtrace::format {

// The beginning of the program's name, for the name of a trace. A file's name has 255 bytes at
// most, and some must be left for the rest and for what `memtrace run` adds.
inline std::string_view NameForAFile(std::string_view program) {
  constexpr size_t kMost = 128;
  if (program.size() <= kMost) return program;
  size_t size = kMost;
  while (size > 0 && (program[size] & 0xc0) == 0x80) --size;  // not within a letter of UTF-8
  return {program.data(), size};
}

}  // namespace memtrace::format

#endif  // MEMTRACE_FORMAT_FILE_NAME_H_
