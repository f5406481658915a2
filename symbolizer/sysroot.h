// Paths of the traced machine -> paths of this one.
//
// With a sysroot every symbolic link on the way is followed as that machine
// would: an absolute target starts again at the sysroot, and ".." stops there.
// (The kernel would leave the sysroot at the first absolute link, and /lib is
// often one.) Without a sysroot a path is returned as it is.

#ifndef MEMTRACE_SYMBOLIZER_SYSROOT_H_
#define MEMTRACE_SYMBOLIZER_SYSROOT_H_

#include <string>
#include <string_view>

namespace memtrace::symbolizer {

// Always a path to try; it need not exist. A link loop ends where it was found.
std::string ResolveInSysroot(const std::string& sysroot, std::string_view path);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_SYSROOT_H_
