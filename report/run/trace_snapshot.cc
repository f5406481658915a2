#include "report/run/trace_snapshot.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "report/run/running_copy.h"
#include "report/run/spool_directory.h"
#include "report/run/trace_follower.h"

namespace memtrace::report {

absl::StatusOr<std::string> CopyRunningTrace(const std::string& trace,
                                             const std::string& directory) {
  const std::string copy =
      absl::StrCat(directory, "/", std::filesystem::path(trace).filename().string());
  // The raw file is copied first. Blocks that are packed meanwhile are then in both copies,
  // and none is in neither.
  if (absl::Status status = CopyRunningFile(trace, copy); !status.ok()) return status;
  const std::string packed = absl::StrCat(trace, kPackedSuffix);
  if (!std::filesystem::exists(packed)) return copy;
  if (absl::Status status = CopyRunningFile(packed, absl::StrCat(copy, kPackedSuffix));
      !status.ok())
    return status;
  auto follower = TraceFollower::Resume(copy);
  if (!follower.ok()) return follower.status();
  if (absl::Status status = (*follower)->Finish(nullptr); !status.ok()) return status;
  return (*follower)->Publish(copy + ".whole", /*replace=*/true);
}

}  // namespace memtrace::report
