#include "report/valgrind/valgrind_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <pugixml.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/whole_io.h"
#include "report/base/errno_status.h"
#include "report/base/unique_fd.h"
#include "report/leak/leak_kinds.h"

namespace memtrace::report::valgrind {
namespace {

using render::LeakResolution;
using render::Loss;
using render::LossFrame;

// Digits, perhaps with commas; 0 where there is no such number.
uint64_t Number(absl::string_view text) {
  uint64_t number = 0;
  std::string digits;
  for (const char c : absl::StripAsciiWhitespace(text)) {
    if (c != ',') digits += c;
  }
  return absl::SimpleAtoi(digits, &number) ? number : 0;
}

uint64_t Address(absl::string_view text) {
  uint64_t address = 0;
  return absl::SimpleHexAtoi(absl::StripAsciiWhitespace(text), &address) ? address : 0;
}

// "00:00:01:02.345 ": days, hours, minutes, seconds.
std::optional<uint64_t> Time(absl::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::StripAsciiWhitespace(text), absl::ByAnyChar(":."));
  if (parts.size() != 5) return std::nullopt;
  constexpr uint64_t kUnits[] = {86'400'000, 3'600'000, 60'000, 1000, 1};
  uint64_t ms = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    uint32_t number;
    if (!absl::SimpleAtoi(parts[i], &number) || number > 1'000'000) return std::nullopt;
    ms += number * kUnits[i];
  }
  return ms * 1'000'000;
}

bool KindOf(absl::string_view name, LeakKind* kind) {
  for (const LeakKind known : kScanKinds) {
    if (render::XmlKind(known) != name) continue;
    *kind = known;
    return true;
  }
  return false;
}

// "192 (96 direct, 96 indirect) bytes in ...": leakedbytes alone is the sum.
uint64_t IndirectBytes(absl::string_view text) {
  const size_t open = text.find(" direct, ");
  const size_t close = text.find(" indirect)");
  if (open == text.npos || close == text.npos || close <= open) return 0;
  const size_t begin = open + strlen(" direct, ");
  return begin < close ? Number(text.substr(begin, close - begin)) : 0;
}

class Parser {
 public:
  Parser(const ValgrindXmlLimits& limits, ValgrindRun* run) : limits_(limits), run_(run) {}

  absl::Status Read(const pugi::xml_node& root) {
    const std::string tool = Text(root.child("protocoltool"));
    run_->protocol = static_cast<uint32_t>(std::min<uint64_t>(
        Number(Text(root.child("protocolversion"))), UINT32_MAX));
    if (tool != "memcheck") {
      return absl::InvalidArgumentError(
          tool.empty() ? "it does not say which tool of Valgrind wrote it"
                       : absl::StrCat("it is of Valgrind's ", tool, ", not of memcheck"));
    }
    if (run_->protocol < 4 || run_->protocol > 6) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has version ", run_->protocol, " of Valgrind's XML; 4 to 6 are known"));
    }
    run_->pid = static_cast<uint32_t>(Number(Text(root.child("pid"))));
    for (const pugi::xml_node line : root.child("preamble").children("line")) {
      std::string text = Text(line);
      absl::string_view rest = text;
      if (absl::ConsumePrefix(&rest, "Using ")) {
        run_->version = std::string(rest.substr(0, rest.find(';')));
      }
    }
    ReadCommand(root.child("args").child("vargv"), &run_->options);
    ReadCommand(root.child("args").child("argv"), &run_->command);
    if (!run_->options.empty()) run_->options.erase(run_->options.begin());  // its name
    ReadOptions();
    for (const pugi::xml_node status : root.children("status")) {
      if (Text(status.child("state")) == "FINISHED") {
        run_->duration_ns = Time(Text(status.child("time")));
      }
    }
    for (const pugi::xml_node error : root.children("error")) ReadError(error);
    for (const pugi::xml_node pair : root.child("suppcounts").children("pair")) {
      if (run_->suppressions.size() == limits_.losses) break;
      run_->suppressions.emplace_back(Text(pair.child("name")), Number(Text(pair.child("count"))));
    }
    ReadSummaries(root);
    return absl::OkStatus();
  }

 private:
  std::string Text(const pugi::xml_node& node) const {
    const absl::string_view text = node.text().get();
    return std::string(text.substr(0, limits_.text_bytes));
  }

  void ReadCommand(const pugi::xml_node& node, std::vector<std::string>* words) const {
    for (const pugi::xml_node word : node.children()) {
      if (words->size() == limits_.losses) break;
      words->push_back(Text(word));
    }
  }

  void ReadOptions() {
    for (const std::string& option : run_->options) {
      absl::string_view value = option;
      uint32_t callers;
      if (absl::ConsumePrefix(&value, "--num-callers=")) {
        if (absl::SimpleAtoi(value, &callers) && callers > 0) run_->callers = callers;
      } else if (absl::ConsumePrefix(&value, "--leak-resolution=")) {
        run_->resolution = value == "low"   ? LeakResolution::kLow
                           : value == "med" ? LeakResolution::kMed
                                            : LeakResolution::kHigh;
      } else if (absl::ConsumePrefix(&value, "--show-leak-kinds=")) {
        const auto kinds = ParseKinds(value, LeakKindSet::OfScans());
        if (kinds.ok()) run_->shown = *kinds;
      } else if (absl::ConsumePrefix(&value, "--show-reachable=")) {
        run_->shown = value == "yes" ? LeakKindSet::OfScans()
                                     : run_->shown.Without(LeakKind::kReachable)
                                           .Without(LeakKind::kIndirect);
      } else if (absl::ConsumePrefix(&value, "--show-possibly-lost=")) {
        run_->shown = value == "yes" ? run_->shown.With(LeakKind::kPossible)
                                     : run_->shown.Without(LeakKind::kPossible);
      } else if (absl::ConsumePrefix(&value, "--run-libc-freeres=")) {
        run_->frees_libc = value != "no";
      } else if (absl::ConsumePrefix(&value, "--run-cxx-freeres=")) {
        run_->frees_cxx = value != "no";
      }
    }
  }

  void ReadError(const pugi::xml_node& error) {
    LeakKind kind;
    if (!KindOf(Text(error.child("kind")), &kind)) {
      ++run_->other_errors;
      return;
    }
    if (run_->losses.size() == limits_.losses) {
      if (!told_limit_) {
        run_->notes.push_back(absl::StrCat("only the first ", limits_.losses,
                                           " loss records were read"));
      }
      told_limit_ = true;
      return;
    }
    Loss loss;
    loss.kind = kind;
    const pugi::xml_node what = error.child("xwhat");
    const uint64_t bytes = Number(Text(what.child("leakedbytes")));
    loss.indirect_bytes = kind == LeakKind::kDefinite
                              ? std::min(bytes, IndirectBytes(Text(what.child("text"))))
                              : 0;
    loss.bytes = bytes - loss.indirect_bytes;
    loss.blocks = Number(Text(what.child("leakedblocks")));
    ReadStack(error.child("stack"), &loss);
    run_->losses.push_back(std::move(loss));
  }

  static bool IsOutermost(absl::string_view function) {
    return function == "main" || function == "(below main)" || function == "clone" ||
           function == "_start" || function == "start_thread";
  }

  void ReadStack(const pugi::xml_node& stack, Loss* loss) const {
    std::vector<size_t> calls;  // the first frame of each
    for (const pugi::xml_node from : stack.children("frame")) {
      if (loss->stack.size() == limits_.frames) {
        loss->cut = true;
        return;
      }
      LossFrame frame;
      frame.ip = Address(Text(from.child("ip")));
      frame.object = Text(from.child("obj"));
      frame.function = Text(from.child("fn"));
      frame.directory = Text(from.child("dir"));
      frame.file = Text(from.child("file"));
      frame.line = static_cast<uint32_t>(
          std::min<uint64_t>(Number(Text(from.child("line"))), UINT32_MAX));
      // Inlined functions have the address that they were inlined at. The same ones once more are
      // another call: of a function by itself.
      if (calls.empty() || loss->stack.back().ip != frame.ip ||
          loss->stack[calls.back()] == frame) {
        calls.push_back(loss->stack.size());
      }
      loss->stack.push_back(std::move(frame));
    }
    // Behind the loader's first code Valgrind reads on in what the kernel left there.
    const auto is_nowhere = [](const LossFrame& frame) {
      return frame.object.empty() && frame.function.empty();
    };
    size_t end = loss->stack.size();
    while (end > 0 && is_nowhere(loss->stack[end - 1])) --end;
    if (end > 0) loss->stack.resize(end);
    while (!calls.empty() && calls.back() >= loss->stack.size()) calls.pop_back();
    const size_t most = run_->resolution == LeakResolution::kLow   ? 2
                        : run_->resolution == LeakResolution::kMed ? 4
                                                                   : SIZE_MAX;
    // A stack that reached main, or what a thread begins with, goes no further. Another was cut, at
    // so many callers or where Valgrind found no way on.
    loss->cut = !loss->stack.empty() && !IsOutermost(loss->stack.back().function);
    if (calls.size() > most) {
      // Records that differ further out are one: only what is common to them counts.
      loss->stack.resize(calls[most]);
      loss->cut = true;
    }
  }

  void ReadSummaries(const pugi::xml_node& root) {
    if (const pugi::xml_node summary = root.child("heap_summary")) {
      const pugi::xml_node live = summary.child("memory_in_use_at_exit");
      const pugi::xml_node usage = summary.child("total_heap_usage");
      ValgrindRun::Heap heap;
      heap.live_bytes = Number(Text(live.child("bytes")));
      heap.live_blocks = Blocks(live);
      heap.allocations = Number(Text(usage.child("allocs")));
      heap.frees = Number(Text(usage.child("frees")));
      heap.bytes_allocated = Number(Text(usage.child("bytes_allocated")));
      run_->heap = heap;
    }
  }

  // The description of protocol 6 says <in_blocks>, what is written is <blocks>.
  uint64_t Blocks(const pugi::xml_node& node) const {
    const pugi::xml_node blocks = node.child("blocks");
    return Number(Text(blocks ? blocks : node.child("in_blocks")));
  }

  const ValgrindXmlLimits& limits_;
  ValgrindRun* run_;
  bool told_limit_ = false;
};

// The part before `end` that is whole, up to the last error or status that has its end, and behind
// it the end of the document.
std::string Mended(absl::string_view text, size_t end) {
  const absl::string_view before = text.substr(0, end);
  size_t keep = 0;
  for (const absl::string_view closing : {"</error>", "</status>", "</args>", "</tool>"}) {
    const size_t at = before.rfind(closing);
    if (at != before.npos) keep = std::max(keep, at + closing.size());
  }
  return keep == 0 ? "" : absl::StrCat(before.substr(0, keep), "</valgrindoutput>");
}

}  // namespace

absl::StatusOr<ValgrindRun> ParseValgrindXml(absl::string_view text,
                                             const ValgrindXmlLimits& limits) {
  if (text.size() > limits.bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is larger than ", limits.bytes >> 20, " MiB"));
  }
  ValgrindRun run;
  pugi::xml_document document;
  // No DTDs, no comments; entities stay what they are outside of the five of XML.
  constexpr unsigned kOptions = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_eol;
  pugi::xml_parse_result result =
      document.load_buffer(text.data(), text.size(), kOptions, pugi::encoding_utf8);
  std::string mended;
  if (!result) {
    const size_t at = std::min(static_cast<size_t>(std::max<ptrdiff_t>(result.offset, 0)),
                               text.size());
    run.damage = absl::StrCat(at + 1 >= text.size() ? "it is cut short at byte "
                                                    : "it is damaged at byte ",
                              at, " (", result.description(), "); what is before that was read");
    // The last byte of a file that was cut is not what is wrong with it.
    mended = Mended(text, at + 1 >= text.size() ? text.size() : at);
    if (!document.load_buffer(mended.data(), mended.size(), kOptions, pugi::encoding_utf8)) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is no XML of Valgrind's: ", result.description(), " at byte ", at,
                       "; where several processes write, each needs a file of its own, as "
                       "--xml-file=app.%p.xml gives it"));
    }
  }
  const pugi::xml_node root = document.child("valgrindoutput");
  if (!root) return absl::InvalidArgumentError("it is no XML of Valgrind's");
  for (pugi::xml_node next = root.next_sibling("valgrindoutput"); next;
       next = next.next_sibling("valgrindoutput")) {
    run.notes.push_back("it has the output of several processes, of which the first is taken");
    break;
  }
  Parser parser(limits, &run);
  const absl::Status status = parser.Read(root);
  if (!status.ok()) return status;
  if (run.damage.empty() && !run.duration_ns.has_value()) {
    run.damage = "the program had not ended when it was written";
  }
  return run;
}

absl::StatusOr<ValgrindRun> ReadValgrindXml(const std::string& path) {
  const auto fail = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
  };
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok())
    return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", strerror(errno)));
  std::string text;
  const ValgrindXmlLimits limits;
  const bool read = base::ReadParts(fd.get(), [&](std::string_view part) {
    text += part;
    return text.size() <= limits.bytes;  // more: says so below
  });
  if (!read) return ErrnoStatus("cannot read", path, errno);
  absl::StatusOr<ValgrindRun> run = ParseValgrindXml(text, limits);
  if (!run.ok()) return fail(run.status().message());
  return run;
}

}  // namespace memtrace::report::valgrind
