#include "report/suppress/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::suppress {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "rbe"), &fclose);
  if (file == nullptr) {
    const int error = errno;
    const std::string message = absl::StrCat(path, ": ", strerror(error));
    if (error == ENOENT) return absl::NotFoundError(message);
    return absl::UnavailableError(message);
  }
  std::string text;
  char buffer[1 << 14];
  size_t read = 0;
  while ((read = fread(buffer, 1, sizeof(buffer), file.get())) > 0) {
    text.append(buffer, read);
    if (text.size() > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": larger than 64 MiB"));
    }
  }
  if (ferror(file.get())) return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  constexpr absl::string_view kMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with it
  if (absl::StartsWith(text, kMark)) text.erase(0, kMark.size());
  return text;
}

}  // namespace memtrace::report::suppress
