#include "report/cli/common_options.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/render/style.h"

namespace memtrace::report {
namespace {

constexpr size_t kColumns = 52;  // of a description, beside the option's name

}  // namespace

void AddNameOptions(CLI::App* command, const NameFlags& flags, absl::string_view when) {
  const auto text = [&](absl::string_view description) {
    std::string out = absl::StrCat(when, description);
    // A sentence that begins with `when` goes on in small letters.
    if (!when.empty()) out[when.size()] = absl::ascii_tolower(out[when.size()]);
    if (out.size() > kColumns) {
      const size_t space = out.rfind(' ', kColumns);
      if (space != out.npos) out[space] = '\n';
    }
    return out;
  };
  command
      ->add_option("--debug-dir", *flags.debug_dirs,
                   text("Separate debug files are here as well; repeatable"))
      ->type_name("D")
      ->expected(1)
      ->check(Directory, "")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--sysroot", *flags.sysroot, text("The traced machine's files are below here"))
      ->type_name("D")
      ->check(Directory, "");
  if (flags.debuginfod == nullptr) return;
  command->add_flag("--debuginfod", *flags.debuginfod,
                    text("Fetch missing debug files from DEBUGINFOD_URLS"));
}

std::string Directory(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return absl::StrCat(path, ": ", strerror(errno));
  return S_ISDIR(st.st_mode) ? "" : absl::StrCat(path, " is no directory");
}

std::string WholeNumber(const std::string& text) {
  uint64_t number;
  if (absl::SimpleAtoi(text, &number)) return "";
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return absl::StrCat("\"", text, "\" is ", digits ? "too large" : "not a whole number");
}

std::string PositiveNumber(const std::string& text) {
  const std::string wrong = WholeNumber(text);
  return wrong.empty() && text.find_first_not_of('0') == text.npos ? "0 is too few" : wrong;
}

void AddTextOptions(CLI::App* command, std::string* color, size_t* width) {
  const auto columns = [](const std::string& text) -> std::string {
    const std::string wrong = WholeNumber(text);
    size_t number = 0;
    if (!wrong.empty() || (absl::SimpleAtoi(text, &number) && number >= render::kMinWidth &&
                           number <= render::kMaxWidth)) {
      return wrong;
    }
    return absl::StrCat(text, " is not from ", render::kMinWidth, " to ", render::kMaxWidth);
  };
  command->add_option("--color", *color, "auto (default), always, never")->type_name("WHEN");
  command->add_option("--width", *width, "Columns of text, 60 to 200")
      ->type_name("N")
      ->check(columns, "");
}

}  // namespace memtrace::report
