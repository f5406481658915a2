#include "report/import/ftrace_line.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "format/imported.h"

namespace memtrace::report::import {
namespace {

using absl::string_view;
using Kind = FtraceLine::Kind;

bool Hex(string_view text, uint64_t* value) {
  absl::ConsumePrefix(&text, "0x");
  return !text.empty() && text.size() <= 16 && absl::SimpleHexAtoi(text, value);
}

string_view TakeWord(string_view* text) {
  *text = absl::StripLeadingAsciiWhitespace(*text);
  const size_t end = std::min(text->find_first_of(" \t"), text->size());
  const string_view word = text->substr(0, end);
  text->remove_prefix(end);
  return word;
}

// "12345.678901:", of any number of digits up to nanoseconds.
bool Time(string_view word, uint64_t* ns) {
  if (!absl::ConsumeSuffix(&word, ":")) return false;
  const size_t dot = word.find('.');
  if (dot == word.npos || dot == 0) return false;
  string_view fraction = word.substr(dot + 1);
  if (fraction.empty() || fraction.size() > 9) return false;
  uint64_t seconds, part;
  for (const char c : word) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c)) && c != '.') return false;
  }
  if (!absl::SimpleAtoi(word.substr(0, dot), &seconds) || !absl::SimpleAtoi(fraction, &part)) {
    return false;
  }
  for (size_t digits = fraction.size(); digits < 9; ++digits) part *= 10;
  constexpr uint64_t kMostSeconds = 4'000'000'000;  // a century: what is more overflows
  if (seconds > kMostSeconds) return false;
  *ns = seconds * 1'000'000'000 + part;
  return true;
}

// "[001]"
bool Processor(string_view word, uint32_t* cpu) {
  return absl::ConsumePrefix(&word, "[") && absl::ConsumeSuffix(&word, "]") &&
         absl::SimpleAtoi(word, cpu);
}

// The part of a line behind "comm-1234", up to the event's own text. A comm may have blanks and
// hyphens in it, and what looks like all the rest: so the first place that fits is taken.
struct Head {
  uint64_t time_ns = 0;
  string_view event, text;
};

bool ParseAfterTask(string_view rest, Head* head) {
  uint32_t cpu;
  string_view word = TakeWord(&rest);
  if (absl::StartsWith(word, "(")) {  // the process: "(1234)", "( 1234)", "(-----)"
    while (!absl::EndsWith(word, ")") && !rest.empty()) word = TakeWord(&rest);
    word = TakeWord(&rest);
  }
  if (!Processor(word, &cpu)) return false;
  word = TakeWord(&rest);
  if (!Time(word, &head->time_ns)) {  // irqs-off, need-resched, ...: "d..1.", not in all logs
    word = TakeWord(&rest);
    if (!Time(word, &head->time_ns)) return false;
  }
  word = TakeWord(&rest);
  if (!absl::ConsumeSuffix(&word, ":") || word.empty()) return false;
  head->event = word;
  head->text = absl::StripLeadingAsciiWhitespace(rest);
  return true;
}

bool ParseTask(string_view line, FtraceLine* out, Head* head) {
  line = absl::StripLeadingAsciiWhitespace(line);
  for (size_t hyphen = line.find('-'); hyphen != line.npos; hyphen = line.find('-', hyphen + 1)) {
    const size_t end = std::min(line.find_first_not_of("0123456789", hyphen + 1), line.size());
    if (end == hyphen + 1 ||
        !absl::SimpleAtoi(line.substr(hyphen + 1, end - hyphen - 1), &out->tid)) {
      continue;
    }
    if (ParseAfterTask(line.substr(end), head)) {
      out->comm = line.substr(0, hyphen);
      return true;
    }
  }
  return false;
}

// "key=value" of the event's text; values end at a blank.
std::optional<string_view> Field(string_view text, string_view key) {
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const size_t equals = at + key.size();
    if (!begins || equals >= text.size() || text[equals] != '=') continue;
    string_view rest = text.substr(equals + 1);
    return rest.substr(0, std::min(rest.find(' '), rest.size()));
  }
  return std::nullopt;
}

// Reads the caller of an event that begins with "(do_work+0x1c) ": trace-cmd knew
// the kernel's symbols.
void Caller(string_view text, FtraceLine* out) {
  if (!absl::ConsumePrefix(&text, "(")) return;
  const size_t end = text.find(')');
  if (end == text.npos) return;
  const string_view found = text.substr(0, end), name = found.substr(0, found.find('+'));
  if (name.size() != found.size() && !Hex(found.substr(name.size() + 1), &out->caller_offset))
    return;
  if (name.empty() || absl::ascii_isdigit(name[0]) || name.size() == 16) {
    // An address, where it knew no function.
    if (uint64_t number; name.empty() || Hex(name, &number)) return;
  }
  out->caller = name;
}

// "ffffffff811b2f5a", "0xffff...", "alloc_pipe_info+0x4a/0x210", and "[ext4]" behind that.
bool CallSite(string_view text, FtraceLine* out) {
  const std::optional<string_view> field = Field(text, "call_site");
  if (!field.has_value() || field->empty()) return false;
  string_view value = *field;
  if (Hex(value, &out->call_site)) {
    Caller(text, out);
    return true;
  }
  const size_t plus = value.rfind('+');
  out->symbol = value.substr(0, plus);
  if (plus != value.npos) {
    const string_view place = value.substr(plus + 1);
    const size_t slash = place.find('/');
    if (!Hex(place.substr(0, slash), &out->call_site)) return false;
    uint64_t symbol_bytes = 0;
    if (slash != place.npos && !Hex(place.substr(slash + 1), &symbol_bytes)) return false;
  }
  const size_t behind = static_cast<size_t>(value.data() + value.size() - text.data());
  string_view rest = text.substr(behind);
  if (absl::ConsumePrefix(&rest, " [")) {
    const size_t end = rest.find(']');
    if (end == rest.npos) return false;
    out->symbol_module = rest.substr(0, end);
  }
  return !out->symbol.empty();
}

bool Pointer(string_view text, uint64_t* address) {
  const std::optional<string_view> field = Field(text, "ptr");
  if (!field.has_value()) return false;
  if (*field == "(null)" || *field == "(nil)") {
    *address = 0;
    return true;
  }
  return Hex(*field, address);
}

bool Number(string_view text, string_view key, uint64_t* value) {
  const std::optional<string_view> field = Field(text, key);
  return field.has_value() && absl::SimpleAtoi(*field, value);
}

FtraceLine Bad(FtraceLine line, const char* problem) {
  line.kind = Kind::kBad;
  line.problem = problem;
  return line;
}

constexpr std::pair<const char*, format::AllocFunction> kAllocEvents[] = {
    {"kmalloc", format::kKmalloc},
    {"kmalloc_node", format::kKmallocNode},
    {"kmem_cache_alloc", format::kKmemCacheAlloc},
    {"kmem_cache_alloc_node", format::kKmemCacheAllocNode},
};

// "... 123456789: kmalloc: ...", as with trace_clock counter and x86-tsc.
bool HasTimeWithoutUnit(string_view text) {
  for (const string_view event : {": kmalloc", ": kfree: ", ": kmem_cache_"}) {
    const size_t colon = text.find(event);
    if (colon == text.npos || colon == 0) continue;
    const string_view word = text.substr(0, colon), time = word.substr(word.rfind(' ') + 1);
    if (!time.empty() && time.find_first_not_of("0123456789") == time.npos) return true;
  }
  return false;
}

FtraceLine ParseEvent(FtraceLine line, const Head& head) {
  line.time_ns = head.time_ns;
  for (const auto& [name, function] : kAllocEvents) {
    if (head.event != name) continue;
    line.function = function;
    if (!CallSite(head.text, &line)) return Bad(line, "no call_site");
    if (!Pointer(head.text, &line.address)) return Bad(line, "no ptr");
    if (!Number(head.text, "bytes_req", &line.requested_bytes)) return Bad(line, "no bytes_req");
    if (!Number(head.text, "bytes_alloc", &line.allocated_bytes)) {
      return Bad(line, "no bytes_alloc");
    }
    constexpr uint64_t kMostBytes = uint64_t{1} << 47;  // of addresses
    if (std::max(line.requested_bytes, line.allocated_bytes) >= kMostBytes) {
      // One that failed may have asked for anything.
      if (line.address != 0) return Bad(line, "no block is so large");
      line.requested_bytes = std::min(line.requested_bytes, kMostBytes - 1);
      line.allocated_bytes = std::min(line.allocated_bytes, kMostBytes - 1);
    }
    if (line.allocated_bytes < line.requested_bytes && line.address != 0) {
      return Bad(line, "bytes_alloc is less than bytes_req");
    }
    line.kind = Kind::kAlloc;
    return line;
  }
  if (head.event == "kfree" || head.event == "kmem_cache_free") {
    if (!Pointer(head.text, &line.address)) return Bad(line, "no ptr");
    line.kind = Kind::kFree;
    return line;
  }
  line.kind = Kind::kOtherEvent;
  return line;
}

// "CPU:1 [LOST 123 EVENTS]", "CPU:1 [123 EVENTS DROPPED]", "CPU:1 [EVENTS DROPPED]".
bool ParseLost(string_view text, FtraceLine* line) {
  text = absl::StripAsciiWhitespace(text);
  if (!absl::ConsumePrefix(&text, "CPU:")) return false;
  const string_view cpu = TakeWord(&text);
  text = absl::StripAsciiWhitespace(text);
  if (!absl::SimpleAtoi(cpu, &line->cpu) || !absl::ConsumePrefix(&text, "[") ||
      !absl::ConsumeSuffix(&text, "]")) {
    return false;
  }
  absl::ConsumePrefix(&text, "LOST ");
  const string_view number = TakeWord(&text);
  if (!absl::SimpleAtoi(number, &line->lost)) {
    line->lost = 0;
    if (number != "EVENTS") return false;
  }
  return true;
}

// "# entries-in-buffer/entries-written: 205/305   #P:4"
bool ParseWritten(string_view text, uint64_t* lost) {
  constexpr string_view kWords = "entries-in-buffer/entries-written:";
  const size_t at = text.find(kWords);
  if (at == text.npos) return false;
  text.remove_prefix(at + kWords.size());
  const string_view numbers = TakeWord(&text);
  const size_t slash = numbers.find('/');
  uint64_t kept, written;
  if (slash == numbers.npos || !absl::SimpleAtoi(numbers.substr(0, slash), &kept) ||
      !absl::SimpleAtoi(numbers.substr(slash + 1), &written)) {
    return false;
  }
  *lost = written - std::min(kept, written);
  return true;
}

// trace-cmd's "cpus=4", "version = 6", "CPU 2 is empty".
bool IsHeading(string_view text) {
  return absl::StartsWith(text, "cpus=") || absl::StartsWith(text, "version = ") ||
         (absl::StartsWith(text, "CPU ") && absl::EndsWith(text, " is empty"));
}

}  // namespace

FtraceLine ParseFtraceLine(string_view text) {
  FtraceLine line;
  const string_view stripped = absl::StripAsciiWhitespace(text);
  if (stripped.empty() || IsHeading(stripped)) {
    line.kind = Kind::kNothing;
    return line;
  }
  if (stripped[0] == '#') {
    line.kind = ParseWritten(stripped, &line.lost) ? Kind::kWritten : Kind::kNothing;
    return line;
  }
  Head head;
  if (ParseTask(stripped, &line, &head)) return ParseEvent(line, head);
  if (ParseLost(stripped, &line)) {
    line.kind = Kind::kLost;
    return line;
  }
  if (HasTimeWithoutUnit(stripped)) {
    return Bad(line,
               "its time is of a clock that counts, not in seconds; record with another "
               "trace_clock, e.g. mono");
  }
  return Bad(line, "it is no event of ftrace's");
}

}  // namespace memtrace::report::import
