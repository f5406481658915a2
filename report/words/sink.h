// Sink: where a renderer's output goes, piece by piece, so that a large report
// is never in memory as a whole.

#ifndef MEMTRACE_REPORT_WORDS_SINK_H_
#define MEMTRACE_REPORT_WORDS_SINK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report::words {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void Write(absl::string_view text) = 0;
  // Nobody will read what is still to come (a closed pipe, a full disk): a
  // renderer may stop.
  virtual bool done() const { return false; }
};

class StringSink : public Sink {
 public:
  void Write(absl::string_view text) override { text_.append(text.data(), text.size()); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace memtrace::report::words

#endif  // MEMTRACE_REPORT_WORDS_SINK_H_
