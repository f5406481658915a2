// DeflatedBase64: a sink that compresses what it is given (DEFLATE without a header, RFC 1951) and
// passes it on as base64: what DecompressionStream('deflate-raw') and atob() undo in a browser.
//
// One thread. Memory: zlib's window and two buffers.

#ifndef MEMTRACE_REPORT_HTML_DEFLATED_BASE64_H_
#define MEMTRACE_REPORT_HTML_DEFLATED_BASE64_H_

#include <zlib.h>

#include <string>

#include "absl/strings/string_view.h"
#include "report/words/sink.h"

namespace memtrace::report::html {

class DeflatedBase64 : public words::Sink {
 public:
  explicit DeflatedBase64(words::Sink* out);  // std::bad_alloc
  ~DeflatedBase64() override;
  DeflatedBase64(const DeflatedBase64&) = delete;
  DeflatedBase64& operator=(const DeflatedBase64&) = delete;

  void Write(absl::string_view text) override;
  bool done() const override { return out_->done(); }
  // Nothing is written after it.
  void Finish();

 private:
  void Run(absl::string_view text, int flush);

  words::Sink* const out_;
  z_stream stream_{};
  std::string packed_;  // not yet passed on: base64 is made of whole triples
};

}  // namespace memtrace::report::html

#endif  // MEMTRACE_REPORT_HTML_DEFLATED_BASE64_H_
