#include "preload/text.h"

#include <cerrno>

namespace memtrace {

std::string_view ErrorText(long error) {
  switch (error < 0 ? -error : error) {
    case EACCES: return "Permission denied";
    case EDQUOT: return "Disk quota exceeded";
    case EEXIST: return "File exists";
    case EFBIG: return "File too large";
    case EINVAL: return "Invalid argument";
    case EIO: return "Input/output error";
    case EISDIR: return "Is a directory";
    case ELOOP: return "Too many levels of symbolic links";
    case EMFILE: return "Too many open files";
    case ENAMETOOLONG: return "File name too long";
    case ENFILE: return "Too many open files in system";
    case ENODEV: return "No such device";
    case ENOENT: return "No such file or directory";
    case ENOMEM: return "Cannot allocate memory";
    case ENOSPC: return "No space left on device";
    case ENOTDIR: return "Not a directory";
    case ENOSYS: return "Function not implemented";  // what some sandboxes answer
    case EPERM: return "Operation not permitted";
    case EROFS: return "Read-only file system";
  }
  return "unexpected error";
}

}  // namespace memtrace
