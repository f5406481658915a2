// OutputFile: a file that is there whole or not at all. Written under another name
// beside its place and renamed by Commit(); removed if that never comes, also where the process is
// ended by SIGINT, SIGTERM or SIGHUP meanwhile (of the file that was created last). A symbolic link
// stays one: what it leads to is replaced.

#ifndef MEMTRACE_REPORT_BASE_OUTPUT_FILE_H_
#define MEMTRACE_REPORT_BASE_OUTPUT_FILE_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace memtrace::report {

// Where the symbolic link `path`, or a chain of them, leads, whether that exists or not; `path`
// itself if it is no link. An error where the kernel does not let this user follow it, as links
// of other users in /tmp.
absl::StatusOr<std::string> BehindLinks(const std::string& path);

class OutputFile {
 public:
  // `mode` less the process's umask. A trace is kPrivate, for it has the command line.
  static constexpr mode_t kPublic = 0666, kPrivate = 0600;
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path,
                                                            mode_t mode = kPublic);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  int fd() const { return fd_; }
  const std::string& temporary_path() const { return temporary_; }

  // Puts the file in its place, instead of what was there.
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::string place, std::string temporary, int fd)
      : path_(std::move(path)),
        place_(std::move(place)),
        temporary_(std::move(temporary)),
        fd_(fd) {}

  const std::string path_;   // as the user has it, for messages
  std::optional<mode_t> mode_;  // of what is replaced
  const std::string place_;  // behind symbolic links
  const std::string temporary_;
  int fd_;
  bool committed_ = false;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_OUTPUT_FILE_H_
