// IndexFile: the file FILE.idx beside a trace: states of an analysis in the middle of its pass
// (report/analysis/pass_state.h), and what the whole of it said of sites over time. docs/index.md has the
// format.
//
//   IndexFile::Open(...)                     one that is there
//   IndexFile::Create(...), Add(...), Finish(...), then Place()      a new one
//
// A new one has no name until Place() gives it its own, whole, in place of the old one: a writer
// that stops or is killed leaves nothing. Where the file system cannot do without a name it has one
// of its own meanwhile. States can be asked for while it is being written.
//
// A file that is found is anybody's. It is taken when it is a regular one, no symbolic link, of
// this user or of the trace's owner, who could as well change the trace; when it is of this trace,
// as it is now, and of this build of the program; and each part of it when its checksum is right.
// All else is as if it were not there.
//
// One thread.

#ifndef MEMTRACE_REPORT_INDEX_INDEX_FILE_H_
#define MEMTRACE_REPORT_INDEX_INDEX_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/private_file.h"
#include "report/analysis/pass_state.h"
#include "report/index/trace_identity.h"

namespace memtrace::report::index {

inline constexpr base::PrivateKind kIndexKind = {".idx", "MTRIDX01"};

class IndexFile : public PassSource {
 public:
  // Null: there is none that can be taken. `trace_owner`: the user whose the trace is.
  static std::unique_ptr<IndexFile> Open(const std::string& path, const TraceIdentity& identity,
                                         uid_t trace_owner);
  // A new one, which will be `path`. Error: nobody can write there, or what is there is no index.
  static absl::StatusOr<std::unique_ptr<IndexFile>> Create(const std::string& path, mode_t mode);

  ~IndexFile() override;
  IndexFile(const IndexFile&) = delete;
  IndexFile& operator=(const IndexFile&) = delete;

  // False: it could not be written, nor will anything behind it.
  bool Add(const PassPoint& point, const std::string& piece, const std::string& state);
  // `series`: what series() gives.
  absl::Status Finish(const TraceIdentity& identity, const std::string& series);
  absl::Status Place();

  bool Find(uint64_t before_ns, uint64_t ticks, PassState* state) override;
  // False: it is damaged.
  bool ReadSeries(std::string* series);

  const std::string& path() const { return path_; }
  size_t states() const { return entries_.size(); }
  uint64_t bytes() const { return end_; }  // of the file
  // Of the last state, and of its piece, as stored.
  uint64_t last_state_bytes() const {
    return entries_.empty() ? 0 : entries_.back().state.stored_bytes;
  }
  uint64_t last_piece_bytes() const {
    return entries_.empty() ? 0 : entries_.back().piece.stored_bytes;
  }
  // Find() has found something.
  bool gave() const { return gave_; }

 private:
  struct Section {
    uint64_t offset = 0, stored_bytes = 0, content_bytes = 0, checksum = 0;
  };
  struct Entry {
    PassPoint point;
    Section piece, state;
  };
  struct Directory {
    std::vector<Entry> entries;
    Section series;
  };

  IndexFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  bool ReadDirectory(const TraceIdentity& identity);
  bool Append(std::string_view content, Section* section);
  bool Write(std::string_view bytes);
  bool Read(const Section& section, std::string* content) const;

  const std::string path_;
  const int fd_;
  std::string temporary_;  // its name while it is written; empty: none
  std::vector<Entry> entries_;
  Section series_;
  uint64_t end_ = 0;
  int error_ = 0;          // errno of what could not be written
  bool gave_ = false;
};

// FILE.idx for FILE.
inline std::string IndexPathBeside(const std::string& trace) { return trace + kIndexKind.suffix; }

}  // namespace memtrace::report::index

#endif  // MEMTRACE_REPORT_INDEX_INDEX_FILE_H_
