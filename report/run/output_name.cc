#include "report/run/output_name.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "format/file_name.h"

namespace memtrace::report {
namespace {

constexpr int kMaxNumber = 100'000;

// Where the extension of the last component begins, or its end.
size_t ExtensionAt(absl::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == name.npos ? 0 : slash + 1;
  const size_t dot = name.rfind('.');
  return dot == name.npos || dot <= base ? name.size() : dot;  // ".hidden" has none
}

int RenameNoReplace(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system that has no such rename: a link is as exclusive.
  if (link(from, to) != 0) return errno;
  unlink(from);
  return 0;
}

}  // namespace

std::string ExpandOutputName(absl::string_view pattern, const OutputFields& fields) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    switch (next) {
      case 'e': name += format::NameForAFile(fields.program); break;
      case 't': absl::StrAppend(&name, fields.start_ns); break;
      case '%': name += '%'; break;
      case 'p':
        if (fields.pid != 0) {
          absl::StrAppend(&name, fields.pid);
        } else if (!name.empty() && name.back() == '.') {
          name.pop_back();
        } else if (name.empty() || name.back() == '/') {
          name += '0';
        }
        break;
      default: name += '%'; continue;  // and the next character by itself
    }
    ++i;
  }
  return name;
}

std::string ChildOutputName(absl::string_view root_output, absl::string_view program,
                            uint32_t pid) {
  const size_t extension = ExtensionAt(root_output);
  const std::string tail =
      absl::StrCat(".", std::string(format::NameForAFile({program.data(), program.size()})), ".",
                   pid, root_output.substr(extension));
  absl::string_view stem = root_output.substr(0, extension);
  // Only the beginning of a long name is kept: the pid tells it from others.
  const auto within_a_letter = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
  };
  constexpr size_t kNumber = 6;  // ".99999" of NumberedName()
  for (size_t name = Basename(stem).size(); name > 1 && name + tail.size() + kNumber > NAME_MAX;
       --name) {
    while (within_a_letter(stem.back()) && name > 1) {
      stem.remove_suffix(1);
      --name;
    }
    stem.remove_suffix(1);
  }
  return absl::StrCat(stem, tail);
}

absl::string_view ExtensionOf(absl::string_view name) { return name.substr(ExtensionAt(name)); }

std::string NumberedName(absl::string_view name, int number) {
  if (number == 0) return std::string(name);
  const size_t extension = ExtensionAt(name);
  return absl::StrCat(name.substr(0, extension), ".", number, name.substr(extension));
}

absl::string_view Basename(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.substr(path.size() > 1 && path.rfind('/') != path.npos ? path.rfind('/') + 1 : 0);
}

absl::StatusOr<std::string> RenameWithoutReplacing(const std::string& from, const std::string& to) {
  for (int number = 0; number < kMaxNumber; ++number) {
    const std::string name = NumberedName(to, number);
    const int error = RenameNoReplace(from.c_str(), name.c_str());
    if (error == 0) return name;
    if (error != EEXIST) return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", name));
  }
  return absl::AlreadyExistsError(
      absl::StrCat("cannot write ", to, ": too many files of this name"));
}

}  // namespace memtrace::report
