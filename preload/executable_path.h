// The path of the file of the program.
//
// The kernel's link, /proc/self/exe, has it but where the loader was called by its name, and where
// the program came from a mount of its own that is attached nowhere (open_tree() with
// OPEN_TREE_CLONE, as crun starts itself): there it says "/", and so does every mapping.

#ifndef MEMTRACE_PRELOAD_EXECUTABLE_PATH_H_
#define MEMTRACE_PRELOAD_EXECUTABLE_PATH_H_

#include "preload/text.h"

namespace memtrace {

// To be asked at the start. "/": there is a file, and no name that leads to it.
void ReadExecutablePath(Text<4096>& path);

}  // namespace memtrace

#endif  // MEMTRACE_PRELOAD_EXECUTABLE_PATH_H_
