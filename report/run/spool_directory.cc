#include "report/run/spool_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/whole_io.h"
#include "report/base/path.h"
#include "report/base/unique_fd.h"
#include "report/run/output_name.h"

namespace memtrace::report {
namespace {

constexpr size_t kMaxNamePart = 200;  // NAME_MAX less what is put around it

}  // namespace

absl::StatusOr<SpoolDirectory> SpoolDirectory::Create(const std::string& near_output) {
  const std::string directory = DirectoryOf(near_output);
  const std::unique_ptr<char, decltype(&free)> real(realpath(directory.c_str(), nullptr), &free);
  if (real == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot write in ", directory, ": ", strerror(errno),
                                            "; choose another place with -o"));
  }
  // Hidden, for the program may look around where it was started.
  std::string path = absl::StrCat(real.get(), strcmp(real.get(), "/") == 0 ? "" : "/", ".",
                                  Basename(near_output).substr(0, kMaxNamePart), ".spool.XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat("cannot write in ", directory, ": ",
                                                    strerror(errno),
                                                    "; choose another place with -o"));
  }
  return SpoolDirectory(std::move(path));
}

absl::StatusOr<SpoolDirectory> SpoolDirectory::Open(const std::string& path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path.c_str(), nullptr), &free);
  struct stat info;
  if (real == nullptr || stat(real.get(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is not the directory that an interrupted run left (.NAME.spool.XXXXXX)"));
  }
  return SpoolDirectory(real.get());
}

std::string SpoolDirectory::OutPattern() const {
  std::string pattern;
  for (char c : path_) {
    pattern += c;
    if (c == '%') pattern += c;
  }
  return absl::StrCat(pattern, "/%e.%p.%t.mtr");
}

absl::Status SpoolDirectory::WriteRunRecord(const RunRecord& record) const {
  const std::string path = absl::StrCat(path_, "/", kRunRecordName);
  const std::string text = absl::StrCat(record.root_pid, "\n", record.output, "\n");
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.ok() || !base::WriteAll(fd.get(), text)) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunRecord> SpoolDirectory::ReadRunRecord() const {
  return report::ReadRunRecord(path_);
}

std::vector<std::string> SpoolDirectory::RawTraces() const {
  std::vector<std::string> traces;
  DIR* directory = opendir(path_.c_str());
  if (directory == nullptr) return traces;
  while (const dirent* entry = readdir(directory)) {
    if (absl::EndsWith(entry->d_name, ".mtr")) {
      traces.push_back(absl::StrCat(path_, "/", entry->d_name));
    }
  }
  closedir(directory);
  std::sort(traces.begin(), traces.end());
  return traces;
}

bool SpoolDirectory::RemoveIfEmpty() const {
  // Without a record it need not be looked into, for which there may be no descriptor.
  if (rmdir(path_.c_str()) == 0) return true;
  // With the record gone but something else there, --finish would not work.
  DIR* directory = opendir(path_.c_str());
  if (directory == nullptr) return false;
  bool empty = true;
  while (const dirent* entry = readdir(directory)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != ".." && name != kRunRecordName) empty = false;
  }
  closedir(directory);
  if (!empty) return false;
  unlink(absl::StrCat(path_, "/", kRunRecordName).c_str());
  return rmdir(path_.c_str()) == 0;
}

bool IsInSpool(const std::string& trace) {
  const std::string directory = DirectoryOf(trace);
  const std::string name(Basename(directory));
  return absl::StartsWith(name, ".") && absl::StrContains(name, ".spool.") &&
         access(absl::StrCat(directory, "/", kRunRecordName).c_str(), F_OK) == 0;
}

}  // namespace memtrace::report
