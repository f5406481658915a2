// What the kernel knows of the file that is mapped at an address: its name and its build-id. By
// PROCMAP_QUERY (Linux 6.11), else from the text of /proc/self/maps, which has no build-id.
//
// Asked on any thread, with signals blocked meanwhile; the buffers are the caller's
// or memory of our own.

#ifndef MEMTRACE_PRELOAD_MAPPING_QUERY_H_
#define MEMTRACE_PRELOAD_MAPPING_QUERY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "preload/text.h"

namespace memtrace {

// The kernel's name of the file that is mapped at `start`. The loader has the one that it was
// given, of the directory that the program was in then. False: there is none, or it is too long.
bool NameOfMapping(uintptr_t start, Text<8192>& path);

// The build-id of the file that is mapped at `start`; it is put into `memory`, which has so many
// `bytes`. Linux 6.12 finds it wherever the program headers are, 6.11 where they are in the file's
// first page. Empty: not told.
std::string_view BuildIdOfMapping(uintptr_t start, char* memory, size_t bytes);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_MAPPING_QUERY_H_
