#include "report/valgrind/driver_options.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/leak/leak_kinds.h"

namespace memtrace::report::valgrind {
namespace {

using LeakCheck = render::ValgrindStyle::LeakCheck;

// Valgrind's and memcheck's, up to 3.26. They change how programs are run there, or are
// about errors that are found by other means.
constexpr absl::string_view kIgnored[] = {
    "-d",
    "-s",
    "--aspace-minaddr",
    "--alignment",
    "--allow-mismatched-debuginfo",
    "--debuginfo-server",
    "--demangle",
    "--dsymutil",
    "--error-limit",
    "--error-markers",
    "--exit-on-first-error",
    "--expensive-definedness-checks",
    "--extra-debuginfo-path",
    "--fair-sched",
    "--free-fill",
    "--freelist-big-blocks",
    "--freelist-vol",
    "--fullpath-after",
    "--ignore-range-below-sp",
    "--ignore-ranges",
    "--input-fd",
    "--keep-debuginfo",
    "--keep-stacktraces",
    "--kernel-variant",
    "--main-stacksize",
    "--malloc-fill",
    "--max-stackframe",
    "--max-threads",
    "--merge-recursive-frames",
    "--modify-fds",
    "--num-transtab-sectors",
    "--partial-loads-ok",
    "--progress-interval",
    "--px-default",
    "--px-file-backed",
    "--read-inline-info",
    "--read-var-info",
    "--realloc-zero-bytes-frees",
    "--redzone-size",
    "--require-text-symbol",
    "--resync-filter",
    "--run-cxx-freeres",
    "--run-libc-freeres",
    "--scheduling-quantum",
    "--show-emwarns",
    "--show-error-list",
    "--show-realloc-size-zero",
    "--sigill-diagnostics",
    "--sim-hints",
    "--smc-check",
    "--soname-synonyms",
    "--stats",
    "--sym-offsets",
    "--time-stamp",
    "--track-fds",
    "--track-origins",
    "--unaligned-loads",
    "--undef-value-errors",
    "--unw-stack-scan-frames",
    "--unw-stack-scan-thresh",
    "--valgrind-stacksize",
    "--vgdb",
    "--vgdb-error",
    "--vgdb-poll",
    "--vgdb-prefix",
    "--vgdb-shadow-registers",
    "--vgdb-stop-at",
    "--wait-for-gdb",
    "--workaround-gcc296-bugs",
    "--xtree-compress-strings",
    "--xtree-leak",
    "--xtree-leak-file",
    "--xtree-memory",
    "--xtree-memory-file",
};

// Those of these options that ask for something that is not done here: a user who
// gave them waits for it.
constexpr absl::string_view kMissed[] = {"--xtree-leak=yes",    "--xtree-memory=allocs",
                                         "--xtree-memory=full", "--track-fds=yes",
                                         "--track-fds=all",     "--exit-on-first-error=yes"};

absl::Status Wrong(absl::string_view word, absl::string_view takes) {
  return absl::InvalidArgumentError(absl::StrCat(word, ": takes ", takes));
}

// One option. False: it is not one that has a meaning here.
class OptionReader {
 public:
  explicit OptionReader(DriverOptions* options) : options_(*options) {}

  absl::StatusOr<bool> Read(const std::string& word) {
    word_ = word;
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    value_ = equals == word.npos ? "" : word.substr(equals + 1);
    absl::Status status = absl::OkStatus();
    if (word == "-q" || word == "--quiet") {
      --options_.verbosity;
    } else if (word == "-v" || word == "--verbose") {
      ++options_.verbosity;
    } else if (word == "-h" || name == "--help" || name == "--help-debug") {
      options_.help = true;
    } else if (word == "--version") {
      options_.version = true;
    } else if (name == "--tool") {
      if (value_ != "memcheck") {
        return absl::InvalidArgumentError(absl::StrCat(
            word, ": only memcheck's leak check is here; memtrace report --format massif and "
                  "dhat write what those tools do"));
      }
    } else if (name == "--leak-check") {
      status = LeakCheckOption();
    } else if (name == "--show-leak-kinds") {
      status = Kinds(&options_.show);
    } else if (name == "--errors-for-leak-kinds") {
      status = Kinds(&options_.errors);
    } else if (name == "--show-reachable") {
      status = YesNo([&](bool yes) {
        options_.show = yes ? LeakKindSet::OfScans()
                            : options_.show.Without(LeakKind::kReachable)
                                  .Without(LeakKind::kIndirect);
      });
    } else if (name == "--show-possibly-lost") {
      status = YesNo([&](bool yes) {
        options_.show = yes ? options_.show.With(LeakKind::kPossible)
                            : options_.show.Without(LeakKind::kPossible);
      });
    } else if (name == "--leak-check-heuristics") {
      const auto heuristics = leak::ParseHeuristics(value_);
      if (!heuristics.ok()) return heuristics.status();
      options_.heuristics = *heuristics;
    } else if (name == "--leak-resolution") {
      status = Resolution();
    } else if (name == "--num-callers") {
      status = Number(1, static_cast<int>(render::kMostCallers),
                      [&](int n) { options_.callers = static_cast<size_t>(n); });
    } else if (name == "--show-below-main") {
      status = YesNo([&](bool yes) { options_.below_main = yes; });
    } else if (name == "--suppressions") {
      if (value_.empty()) return Wrong(word, "a file");
      options_.suppressions.push_back(value_);
    } else if (name == "--default-suppressions") {
      status = YesNo([&](bool yes) { options_.default_suppressions = yes; });
    } else if (name == "--gen-suppressions") {
      // "yes" asks for each error while the program runs; here it has ended by then.
      if (value_ != "no" && value_ != "yes" && value_ != "all")
        return Wrong(word, "no, yes or all");
      options_.gen_suppressions = value_ == "no" ? DriverOptions::GenSuppressions::kNo
                                                 : DriverOptions::GenSuppressions::kAll;
    } else if (name == "--error-exitcode") {
      status = Number(0, 255, [&](int n) { options_.error_exitcode = n; });
    } else if (name == "--show-mismatched-frees") {
      status = YesNo([&](bool yes) { options_.mismatched_frees = yes; });
    } else if (name == "--xml") {
      status = YesNo([&](bool yes) { options_.xml = yes; });
    } else if (name == "--log-file") {
      status = File(&options_.log_file);
      options_.log_fd.reset();  // of both the last one counts
    } else if (name == "--xml-file") {
      status = File(&options_.xml_file);
      options_.xml_fd.reset();
    } else if (name == "--log-fd") {
      status = Number(0, 1 << 20, [&](int n) { options_.log_fd = n; });
      options_.log_file.clear();
    } else if (name == "--xml-fd") {
      status = Number(0, 1 << 20, [&](int n) { options_.xml_fd = n; });
      options_.xml_file.clear();
    } else if (name == "--xml-user-comment") {
      options_.user_comment = value_;
    } else if (name == "--trace-children") {
      status = YesNo([&](bool yes) { options_.trace_children = yes; });
    } else if (name == "--trace-children-skip") {
      AddPatterns(&options_.skip_children);
    } else if (name == "--trace-children-skip-by-arg") {
      AddPatterns(&options_.skip_children_by_argument);
    } else if (name == "--child-silent-after-fork") {
      status = YesNo([&](bool yes) { options_.child_silent_after_fork = yes; });
    } else {
      return false;
    }
    if (!status.ok()) return status;
    return true;
  }

 private:
  absl::Status LeakCheckOption() {
    if (value_ == "no") {
      options_.leak_check = LeakCheck::kNo;
    } else if (value_ == "summary") {
      options_.leak_check = LeakCheck::kSummary;
    } else if (value_ == "yes" || value_ == "full") {
      options_.leak_check = LeakCheck::kFull;
    } else {
      return Wrong(word_, "no, summary, yes or full");
    }
    return absl::OkStatus();
  }

  absl::Status Kinds(LeakKindSet* set) {
    const auto kinds = ParseKinds(value_, LeakKindSet::OfScans());
    if (!kinds.ok()) {
      return Wrong(word_, "definite, indirect, possible, reachable separated by commas, or all, "
                          "or none");
    }
    *set = *kinds;
    return absl::OkStatus();
  }

  absl::Status Resolution() {
    if (value_ == "low") {
      options_.resolution = render::LeakResolution::kLow;
    } else if (value_ == "med") {
      options_.resolution = render::LeakResolution::kMed;
    } else if (value_ == "high") {
      options_.resolution = render::LeakResolution::kHigh;
    } else {
      return Wrong(word_, "low, med or high");
    }
    return absl::OkStatus();
  }

  absl::Status YesNo(const std::function<void(bool)>& set) {
    if (value_ != "yes" && value_ != "no") return Wrong(word_, "yes or no");
    set(value_ == "yes");
    return absl::OkStatus();
  }

  absl::Status Number(int least, int most, const std::function<void(int)>& set) {
    int number;
    if (!absl::SimpleAtoi(value_, &number) || number < least || number > most) {
      return Wrong(word_, absl::StrCat("a number from ", least, " to ", most));
    }
    set(number);
    return absl::OkStatus();
  }

  // Several may be given at once, and the option more than once.
  void AddPatterns(std::vector<std::string>* patterns) {
    for (absl::string_view pattern : absl::StrSplit(value_, ',', absl::SkipEmpty()))
      patterns->emplace_back(pattern);
  }

  absl::Status File(std::string* file) {
    if (value_.empty()) return Wrong(word_, "a file");
    *file = value_;
    return absl::OkStatus();
  }

  DriverOptions& options_;
  std::string word_, value_;
};

// "--memcheck:leak-check=yes" is "--leak-check=yes"; what is so said of another tool is empty.
absl::StatusOr<std::string> OfMemcheck(const std::string& word) {
  const size_t colon = word.find(':');
  if (!absl::StartsWith(word, "--") || colon == word.npos || colon > word.find('=')) return word;
  if (colon == 2 || colon + 1 == word.size()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown option ", word));
  }
  return word.substr(2, colon - 2) == "memcheck" ? absl::StrCat("--", word.substr(colon + 1)) : "";
}

bool IsIgnored(absl::string_view word) {
  const absl::string_view name = word.substr(0, word.find('='));
  return std::find(std::begin(kIgnored), std::end(kIgnored), name) != std::end(kIgnored);
}

}  // namespace

absl::StatusOr<DriverOptions> ParseDriverOptions(const std::vector<std::string>& words,
                                                 const std::vector<ConfiguredOptions>& configured) {
  DriverOptions options;
  OptionReader reader(&options);
  const auto take = [&](const std::string& word) -> absl::Status {
    const absl::StatusOr<std::string> plain = OfMemcheck(word);
    if (!plain.ok()) return plain.status();
    if (plain->empty()) return absl::OkStatus();
    const absl::StatusOr<bool> known = reader.Read(*plain);
    if (!known.ok()) return known.status();
    if (*known) return absl::OkStatus();
    if (!IsIgnored(*plain))
      return absl::InvalidArgumentError(absl::StrCat("unknown option ", word));
    options.ignored.push_back(*plain);
    const std::string name = plain->substr(0, plain->find('='));
    std::erase_if(options.missed,
                  [&](const std::string& one) { return one.substr(0, one.find('=')) == name; });
    if (std::ranges::find(kMissed, *plain) != std::end(kMissed)) options.missed.push_back(*plain);
    return absl::OkStatus();
  };
  for (const ConfiguredOptions& source : configured) {
    for (const std::string& word : source.words) {
      const absl::Status status =
          absl::StartsWith(word, "-")
              ? take(word)
              : absl::InvalidArgumentError(absl::StrCat(word, " is no option"));
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(source.place, ": ", status.message()));
      }
    }
  }
  size_t i = 0;
  for (; i < words.size() && absl::StartsWith(words[i], "-"); ++i) {
    if (words[i] == "--") {
      ++i;
      break;
    }
    if (absl::Status status = take(words[i]); !status.ok()) return status;
  }
  options.command.assign(words.begin() + static_cast<ptrdiff_t>(i), words.end());
  if (options.xml) {
    if (options.leak_check == LeakCheck::kSummary) options.leak_check = LeakCheck::kFull;
    if (options.xml_file.empty() && !options.xml_fd.has_value() && !options.help &&
        !options.version) {
      return absl::InvalidArgumentError("--xml=yes needs --xml-file or --xml-fd");
    }
  }
  if (options.command.empty() && !options.help && !options.version) {
    return absl::InvalidArgumentError("no program specified");
  }
  return options;
}

absl::StatusOr<std::string> ExpandLogName(
    absl::string_view name, uint32_t pid, uint32_t number,
    const std::function<std::optional<std::string>(const std::string&)>& variable) {
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\": ", why));
  };
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      out += name[i];
      continue;
    }
    if (++i == name.size()) return wrong("a % at its end");
    switch (name[i]) {
      case '%': out += '%'; break;
      case 'p': absl::StrAppend(&out, pid); break;
      case 'n': absl::StrAppend(&out, number); break;
      case 'q': {
        const size_t end = name.find('}', i);
        if (i + 1 >= name.size() || name[i + 1] != '{' || end == name.npos) {
          return wrong("%q is followed by {VARIABLE}");
        }
        const std::string variable_name(name.substr(i + 2, end - i - 2));
        const std::optional<std::string> value = variable(variable_name);
        if (!value.has_value()) return wrong(absl::StrCat(variable_name, " is not set"));
        absl::StrAppend(&out, *value);
        i = end;
        break;
      }
      default:
        return wrong("after a % is one of p, q{VARIABLE}, n, %");
    }
  }
  return out;
}

std::string DriverHelp() {
  return R"(Runs a program under memtrace and reports leaks, and frees that are errors, as
Valgrind's memcheck does.

memtrace-valgrind [OPTIONS] PROGRAM [ARGUMENTS...]

Options, as Valgrind has them:
  -h, --help                     This text
  --version                      The version of memtrace
  -q, --quiet                    Errors and loss records alone
  -v, --verbose                  Suppressions that were used, too
  --tool=memcheck                There is no other
  --leak-check=WHAT              no, summary (default), yes or full
  --show-leak-kinds=SET          definite,possible (default): of definite,
                                 indirect, possible, reachable; all; none
  --errors-for-leak-kinds=SET    The same: which count as errors
  --show-reachable=YES           yes: the same as --show-leak-kinds=all
  --show-possibly-lost=YES       no: without possible
  --leak-check-heuristics=SET    Interior pointers that count: stdstring,
                                 length64, newarray, multipleinheritance,
                                 gobject, gslice; all (default); none
  --leak-resolution=HOW          low, med, high (default)
  --num-callers=N                Frames of a stack (12)
  --show-below-main=YES          yes: the frames that run main, too
  --suppressions=FILE            Leave these leaks and errors out; repeatable
  --default-suppressions=YES     no: the C and C++ runtime's own too
  --gen-suppressions=WHAT        no (default), all: print suppressions
  --show-mismatched-frees=YES    no: nothing of blocks of operator new that free
                                 frees, and the like
  --error-exitcode=N             Exit status when there are errors and the
                                 program itself had none (0: the program's)
  --log-file=FILE                Where the report goes; %p is the pid,
                                 %q{VAR} a variable, %n a number, %% a %
  --log-fd=N                     The same, to a descriptor (2)
  --xml=YES                      yes: XML of protocol 4
  --xml-file=FILE                Where that goes
  --xml-fd=N                     The same, to a descriptor
  --xml-user-comment=TEXT        Put this into the XML
  --trace-children=YES           yes: programs that it starts, too
  --trace-children-skip=LIST     But not these, nor what they start: patterns of
                                 their files, with commas between them
  --trace-children-skip-by-arg=LIST
                                 The same, by patterns of their arguments
  --child-silent-after-fork=YES  yes: nothing about forked children

Options are also taken from ~/.valgrindrc, the variable VALGRIND_OPTS and
./.valgrindrc, as Valgrind does. Its other options are accepted and without
effect; -v names those that were given. The exit status is the program's, or
--error-exitcode when the program's is 0 and there are errors, or 2 when its
leaks could not be found out.
)";
}

}  // namespace memtrace::report::valgrind
