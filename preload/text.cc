#include "preload/text.h"

#include <cerrno>

namespace memtrace {
namespace {

// Empty: there are none.
std::string_view WordsOfError(uint64_t error) {
  switch (error) {
    case EACCES: return "Permission denied";
    case EDQUOT: return "Disk quota exceeded";
    case EEXIST: return "File exists";
    case EFBIG: return "File too large";
    case EINVAL: return "Invalid argument";
    case EIO: return "Input/output error";
    case EISDIR: return "Is a directory";
    case ELOOP: return "Too many levels of symbolic links";
    case EMEDIUMTYPE: return "Not a regular file";  // of TraceName::CreateFile()
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
  return {};
}

}  // namespace

Text<48> ErrorText(long error) {
  const auto number = static_cast<uint64_t>(error < 0 ? -error : error);
  Text<48> text;
  text << WordsOfError(number);
  if (text.size() == 0) text << "unexpected error " << number;
  return text;
}

uint64_t HexAfter(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == std::string_view::npos) return 0;
  std::string_view number = From(text, at + label.size());
  while (number.starts_with(' ') || number.starts_with('\t')) number.remove_prefix(1);
  if (number.starts_with("0x")) number.remove_prefix(2);
  return TakeNumber(number, 16);
}

}  // namespace memtrace
