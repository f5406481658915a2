// Output: standard output, or a file that appears only when it is whole (report/base/output_file.h).
//
// On standard output a reader that has gone away (`| head`) ends the report quietly: it has got
// all it wanted.
//
// One thread. Ignores SIGPIPE in the whole process from Open() on.

#ifndef MEMTRACE_REPORT_RENDER_OUTPUT_H_
#define MEMTRACE_REPORT_RENDER_OUTPUT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/base/output_file.h"
#include "report/words/sink.h"

namespace memtrace::report::render {

class Output : public words::Sink {
 public:
  // `path` empty, "-" or what standard output leads to ("/dev/stdout"): standard output.
  static absl::StatusOr<Output> Open(const std::string& path);
  Output(Output&& other) noexcept;
  Output& operator=(Output&&) = delete;
  ~Output() override;

  int fd() const { return fd_; }
  void Write(absl::string_view text) override;
  bool done() const override { return closed_ || error_ != 0; }
  // Writes what is buffered and puts the file into its place.
  absl::Status Commit();

 private:
  Output() = default;
  void Flush();

  std::string path_;       // empty: standard output
  std::unique_ptr<OutputFile> file_;  // nullptr: standard output, a device or a pipe
  std::string buffer_;
  int fd_ = -1;
  int error_ = 0;       // errno of the first failed write
  bool closed_ = false;  // EPIPE
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_OUTPUT_H_
