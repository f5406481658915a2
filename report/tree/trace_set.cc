#include "report/tree/trace_set.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/trace/file_header.h"
#include "report/trace/run_record.h"

namespace memtrace::report {
namespace {

// Whether it is a spool directory of `memtrace run`: named .NAME.spool.XXXXXX, with a run record.
bool IsSpool(const std::string& name, const std::string& path) {
  struct stat info;
  return absl::StartsWith(name, ".") && absl::StrContains(name, ".spool.") &&
         stat(absl::StrCat(path, "/", kRunRecordName).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

absl::Status AddDirectory(const std::string& path, TraceSet* set) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), &closedir);
  if (directory == nullptr) {
    return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  }
  std::vector<TraceSet::File> found;
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    const std::string file = absl::StrCat(path, absl::EndsWith(path, "/") ? "" : "/", name);
    struct stat info;
    if (stat(file.c_str(), &info) != 0) {
      // A link to nothing, or gone meanwhile. One that is named as a trace is worth a word.
      if (absl::EndsWith(name, ".mtr")) found.push_back({file, 0});
      continue;
    }
    if (S_ISDIR(info.st_mode) && IsSpool(name, file)) set->spools.push_back(file);
    // A file that is named as a trace and is none, for instance a pipe, is
    // reported where it is opened.
    const bool named = absl::EndsWith(name, ".mtr") && !S_ISDIR(info.st_mode);
    if (named || (S_ISREG(info.st_mode) && BeginsAsATrace(file))) {
      found.push_back({file, static_cast<uint64_t>(info.st_size)});
    }
  }
  if (found.empty()) {
    std::string message = absl::StrCat(path, " is a directory without a trace in it");
    if (!set->spools.empty()) {
      absl::StrAppend(&message, "; a run has left some in ", set->spools.front(),
                      ": memtrace run --finish");
    }
    return absl::NotFoundError(message);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  set->files.insert(set->files.end(), found.begin(), found.end());
  return absl::OkStatus();
}

}  // namespace

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<TraceSet> FindTraces(const std::vector<std::string>& paths) {
  TraceSet set;
  for (const std::string& path : paths) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) {
      const int error = errno;
      return absl::NotFoundError(
          absl::StrCat(path, ": ", strerror(error), error == ENOENT ? WhoWrites(path) : ""));
    }
    if (S_ISDIR(info.st_mode)) {
      const absl::Status added = AddDirectory(path, &set);
      if (!added.ok()) return added;
    } else {
      set.files.push_back({path, static_cast<uint64_t>(info.st_size)});
    }
  }
  for (const TraceSet::File& file : set.files) set.total_bytes += file.bytes;
  return set;
}

}  // namespace memtrace::report
