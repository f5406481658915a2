// Regex: the POSIX extended regular expression of an option, such as --match.

#ifndef MEMTRACE_REPORT_RENDER_REGEX_H_
#define MEMTRACE_REPORT_RENDER_REGEX_H_

#include <regex.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace memtrace::report::render {

class Regex {
 public:
  explicit Regex(absl::string_view option) : option_(option) {}
  ~Regex() {
    if (given_) regfree(&regex_);
  }
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Once. Empty: it is not given. An error names the option.
  absl::Status Compile(const std::string& text) {
    if (text.empty()) return absl::OkStatus();
    const int error = regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_NOSUB);
    given_ = error == 0;
    if (given_) return absl::OkStatus();
    char message[256];
    regerror(error, &regex_, message, sizeof(message));
    return absl::InvalidArgumentError(absl::StrCat(
        option_, ": \"", text, "\" is not a regular expression: ", message));
  }
  bool given() const { return given_; }
  bool Finds(const std::string& text) const {
    return given_ && !text.empty() && regexec(&regex_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  const std::string option_;
  regex_t regex_;
  bool given_ = false;
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_REGEX_H_
