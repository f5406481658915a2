// LiveTrace: the trace of a process that is at work, for a report of it by this process.
//
//   const LiveTrace live("/x/app.17.3.mtr", source, opened_ns);
//   TraceReader::Open("/x/app.17.3.mtr")      reads `source`
//   live.ReadingIsOver();                     before names are looked up and the report is written
//
// What it consists of may be in several files, which are open and need not have names any more.
// While the object exists, who opens the trace by its name gets it. One at a time; not while
// another thread opens traces.

#ifndef MEMTRACE_REPORT_TRACE_LIVE_TRACE_H_
#define MEMTRACE_REPORT_TRACE_LIVE_TRACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "report/trace/byte_source.h"

namespace memtrace::report {

class LiveTrace {
 public:
  // `opened_ns`: by CLOCK_MONOTONIC, everything before is in it. `reading_is_over` may be empty.
  LiveTrace(std::string name, std::shared_ptr<const ByteSource> source, uint64_t opened_ns,
            std::function<void()> reading_is_over = {});
  ~LiveTrace();
  LiveTrace(const LiveTrace&) = delete;
  LiveTrace& operator=(const LiveTrace&) = delete;

  // nullptr: there is none of this name.
  static const LiveTrace* Find(const std::string& name);

  std::unique_ptr<ByteSource> source() const;
  uint64_t opened_ns() const { return opened_ns_; }

  // Nothing more is read of `source`, which is not kept as it is any longer.
  void ReadingIsOver() const {
    if (reading_is_over_) reading_is_over_();
  }

 private:
  const std::string name_;
  const std::shared_ptr<const ByteSource> source_;
  const uint64_t opened_ns_;
  const std::function<void()> reading_is_over_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_TRACE_LIVE_TRACE_H_
