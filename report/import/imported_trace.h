// ImportedTrace: writes a trace file from events that another tool recorded, in one order.
//
// Every event has a stamp of its own, and no two the same: the order of the file is the order
// in which they are given (docs/event-order.md). The words of a thread are kept until they
// fill a block, so memory grows with the threads and call sites and not with the events.

#ifndef MEMTRACE_REPORT_IMPORT_IMPORTED_TRACE_H_
#define MEMTRACE_REPORT_IMPORT_IMPORTED_TRACE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "format/event_words.h"
#include "format/record_encoder.h"
#include "report/base/output_file.h"
#include "report/trace/block_writer.h"

namespace memtrace::report::import {

class ImportedTrace {
 public:
  static absl::StatusOr<std::unique_ptr<ImportedTrace>> Create(const std::string& path);

  // Tells which process the trace is of: the words of its command line, and its executable.
  void SetProcess(std::vector<std::string> command, std::string executable);

  // These return numbers from 1, the same again for the same arguments. A call site
  // is a place in a module.
  uint32_t CallSite(uint32_t module, uint64_t pc);
  uint32_t Module(absl::string_view path, uint64_t bias);

  // Times are of the log's clock and should not go back; where they do the order is kept.
  // 0: of the first event of all.
  void Alloc(uint32_t tid, absl::string_view thread, uint64_t time_ns,
             format::AllocFunction function, uint64_t address, uint64_t requested,
             uint64_t usable, uint32_t call_site);
  void Free(uint32_t tid, absl::string_view thread, uint64_t time_ns, uint64_t address);

  // The log goes on until `time_ns`: blocks that are not freed in it were live at least until then.
  void Passed(uint64_t time_ns);

  void Note(absl::string_view text);
  void Counter(absl::string_view name, uint64_t value);

  size_t threads() const { return threads_.size(); }
  size_t call_sites() const { return site_words_.size() - 1; }

  // Writes what is left, and puts the file in its place. Tells the first error of all.
  absl::Status Finish();

 private:
  struct Thread {
    uint32_t serial = 0, sequence = 0;
    std::string name;
    std::vector<uint64_t> words;
    absl::flat_hash_set<uint32_t> defined;  // slots
  };
  static constexpr size_t kBlockWords = 8192;
  static constexpr size_t kMostPendingWords = 8 << 20;
  static constexpr uint64_t kStartNs = 1'000'000'000;  // of the trace's clock

  ImportedTrace(std::unique_ptr<OutputFile> file, std::string path);
  Thread& Begin(uint32_t tid, absl::string_view name, uint64_t time_ns);
  void End(Thread* thread, size_t words_before);
  void FlushThread(Thread* thread);
  void Record(const std::function<void(format::RecordEncoder&)>& fill);
  void FlushRecords();
  void WriteProcess();

  std::unique_ptr<OutputFile> file_;
  BlockWriter writer_;
  absl::Status status_;
  std::vector<std::string> command_;
  std::string executable_;
  uint64_t first_ns_ = UINT64_MAX;  // of the log's clock
  uint64_t now_ = kStartNs;         // the last stamp
  uint64_t passed_ns_ = 0;          // of the log's clock, at the latest line
  std::map<uint32_t, Thread> threads_;
  std::vector<uint64_t> site_words_;  // by number, from 1
  absl::flat_hash_map<uint64_t, uint32_t> sites_;  // by node word
  absl::flat_hash_map<std::pair<std::string, uint64_t>, uint32_t> modules_;  // by path and bias
  std::vector<uint8_t> record_buffer_;
  std::vector<uint8_t> records_;
  size_t pending_words_ = 0;
};

}  // namespace memtrace::report::import

#endif  // MEMTRACE_REPORT_IMPORT_IMPORTED_TRACE_H_
