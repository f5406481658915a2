#include "report/gate/baseline.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/names/fingerprint.h"
#include "report/words/escape.h"
#include "report/words/units.h"

namespace memtrace::report::gate {
namespace {

constexpr absl::string_view kHeader =
    "# memtrace baseline 1: leaks that are known. A line each: what one process may leak there.\n"
    "# Comments directly above a line are about it; until=YYYY-MM-DD is the last day it holds.\n"
    "# memtrace check --baseline FILE --update-baseline keeps comments, dates and order.\n"
    "\n";

int Digits(absl::string_view text) {
  int number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

bool IsDate(absl::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i != 4 && i != 7 && !absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  std::tm date = {};
  date.tm_year = Digits(text.substr(0, 4)) - 1900;
  date.tm_mon = Digits(text.substr(5, 2)) - 1;
  date.tm_mday = Digits(text.substr(8, 2));
  const std::tm given = date;
  timegm(&date);  // what is no day becomes another
  return date.tm_year == given.tm_year && date.tm_mon == given.tm_mon &&
         date.tm_mday == given.tm_mday;
}

// A word of a line: no blank, no control character, no %, but as %XX.
std::string AsWord(absl::string_view text) {
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || byte == '%') {
      absl::StrAppend(&word, absl::StrFormat("%%%02X", byte));
    } else {
      word += c;
    }
  }
  return word;
}

std::string FromWord(absl::string_view word) {
  std::string text;
  for (size_t i = 0; i < word.size(); ++i) {
    unsigned value = 0;
    if (word[i] == '%' && i + 2 < word.size() &&
        absl::SimpleHexAtoi(word.substr(i + 1, 2), &value)) {
      text += static_cast<char>(value);
      i += 2;
    } else {
      text += word[i];
    }
  }
  return text;
}

std::tuple<std::string, LeakKind, std::string> KeyOf(const BaselineEntry& entry) {
  return {entry.program, entry.kind, entry.fingerprint};
}

absl::StatusOr<BaselineEntry> ParseEntry(absl::string_view text) {
  BaselineEntry entry;
  const auto next = [&text] {
    text = absl::StripLeadingAsciiWhitespace(text);
    const size_t end = std::min(text.find_first_of(" \t"), text.size());
    const absl::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    return word;
  };
  const auto kind = ParseKind(next());
  if (!kind.ok()) return kind.status();
  entry.kind = *kind;
  const absl::string_view fingerprint = next();
  if (!IsFingerprint(fingerprint)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", fingerprint, "\" is no fingerprint, which is 16 digits and letters from a to f"));
  }
  entry.fingerprint = std::string(fingerprint);
  bool has_bytes = false, has_blocks = false;
  std::set<absl::string_view> fields;
  for (text = absl::StripAsciiWhitespace(text); !text.empty();
       text = absl::StripAsciiWhitespace(text)) {
    if (absl::ConsumePrefix(&text, "caller=")) {
      for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t"))) {
        if (!absl::StartsWith(word, "until=")) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "\"", word,
            "\" is a part of caller=, which takes the rest of the line: write it before that"));
      }
      entry.caller = std::string(text);
      break;
    }
    const absl::string_view word = next();
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (!fields.insert(field.first).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\": ", field.first, "= was there before"));
    }
    bool good = true;
    if (field.first == "bytes") {
      good = has_bytes = absl::SimpleAtoi(field.second, &entry.bytes);
    } else if (field.first == "blocks") {
      good = has_blocks = absl::SimpleAtoi(field.second, &entry.blocks);
    } else if (field.first == "lost_bytes") {
      good = absl::SimpleAtoi(field.second, &entry.lost.bytes);
    } else if (field.first == "lost_blocks") {
      good = absl::SimpleAtoi(field.second, &entry.lost.blocks);
    } else if (field.first == "until") {
      good = IsDate(field.second);
      entry.until = std::string(field.second);
    } else if (field.first == "program") {
      entry.program = FromWord(field.second);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("\"", word,
                                                     "\": there are bytes=, blocks=, lost_bytes=, "
                                                     "lost_blocks=, until=, program= and caller="));
    }
    if (!good) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\": ", field.first == "until" ? "not a date as 2027-01-31"
                                                                 : "not a number"));
    }
  }
  if (fields.contains("lost_bytes") != fields.contains("lost_blocks")) {
    return absl::InvalidArgumentError("lost_bytes= and lost_blocks= come together");
  }
  if (!has_bytes || !has_blocks || entry.program.empty()) {
    return absl::InvalidArgumentError("a leak needs bytes=, blocks= and program=");
  }
  return entry;
}

// The numbers of an entry.
std::array<uint64_t, 4> NumbersOf(const BaselineEntry& entry) {
  return {entry.bytes, entry.blocks, entry.lost.bytes, entry.lost.blocks};
}

bool IsMoreThan(const BaselineEntry& entry, const BaselineEntry& other) {
  const auto numbers = NumbersOf(entry), others = NumbersOf(other);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] > others[i]) return true;
  }
  return false;
}

// Makes each number of `entry` at least that of `other`.
void Raise(const BaselineEntry& other, BaselineEntry* entry) {
  entry->bytes = std::max(entry->bytes, other.bytes);
  entry->blocks = std::max(entry->blocks, other.blocks);
  entry->lost.bytes = std::max(entry->lost.bytes, other.lost.bytes);
  entry->lost.blocks = std::max(entry->lost.blocks, other.lost.blocks);
}

}  // namespace

LostLeak LostLeakOf(const std::string& program, LeakKind kind, const std::string& fingerprint) {
  return {program, IsLost(kind) ? LeakKind::kDefinite : kind, fingerprint};
}

std::string ChangesText(const BaselineChanges& changes) {
  std::vector<std::string> parts;
  const auto add = [&](uint64_t count, absl::string_view what) {
    if (count != 0) parts.push_back(absl::StrCat(words::Count(count), " ", what));
  };
  add(changes.added, "added");
  add(changes.raised, "raised");
  add(changes.lowered, "lowered");
  add(changes.removed, "removed");
  if (parts.empty()) parts.emplace_back(changes.is_new ? "written, without a leak" : "unchanged");
  add(changes.kept, "kept, for not all was seen");
  add(changes.suppressed, "kept, suppressed now");
  return absl::StrJoin(parts, ", ");
}

std::string BaselineLine(const BaselineEntry& entry) {
  std::string line = absl::StrCat(KindName(entry.kind), " ", entry.fingerprint, " bytes=",
                                  entry.bytes, " blocks=", entry.blocks);
  if (entry.lost.blocks != 0) {
    absl::StrAppend(&line, " lost_bytes=", entry.lost.bytes, " lost_blocks=", entry.lost.blocks);
  }
  if (!entry.until.empty()) absl::StrAppend(&line, " until=", entry.until);
  absl::StrAppend(&line, " program=", AsWord(entry.program));
  if (!entry.caller.empty()) {
    absl::StrAppend(&line, " caller=", words::EscapeControls(entry.caller));
  }
  return line;
}

absl::StatusOr<Baseline> Baseline::Parse(absl::string_view text, const std::string& file) {
  Baseline baseline;
  uint32_t number = 0;
  std::map<std::tuple<std::string, LeakKind, std::string>, uint32_t> seen;
  absl::ConsumeSuffix(&text, "\n");
  if (text.empty()) return baseline;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    Line kept{std::string(line)};
    if (!content.empty() && content.front() != '#') {
      auto entry = ParseEntry(content);
      if (!entry.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(file, ":", number, ": ", entry.status().message()));
      }
      entry->line = number;
      const auto [other, is_new] = seen.try_emplace(KeyOf(*entry), number);
      if (!is_new) {
        return absl::InvalidArgumentError(
            absl::StrCat(file, ":", number, ": the same leak as in line ", other->second));
      }
      kept.entry = baseline.entries_.size();
      baseline.entries_.push_back(*std::move(entry));
    }
    baseline.lines_.push_back(std::move(kept));
  }
  return baseline;
}

const BaselineEntry* Baseline::Find(LeakKind kind, absl::string_view fingerprint,
                                    absl::string_view program) const {
  const BaselineEntry* of_any = nullptr;
  for (const BaselineEntry& entry : entries_) {
    if (entry.kind != kind || entry.fingerprint != fingerprint) continue;
    if (entry.program == program) return &entry;
    if (entry.program == "*") of_any = &entry;
  }
  return of_any;
}

std::string Baseline::Update(const std::vector<BaselineEntry>& leaks,
                             const std::set<std::string>& programs, LeakKindSet kinds,
                             const std::set<std::string>& part_seen, BaselineChanges* changes,
                             const std::set<LostLeak>& suppressed) const {
  BaselineChanges done = {.is_new = lines_.empty()};
  std::map<std::tuple<std::string, LeakKind, std::string>, BaselineEntry> now;
  for (const BaselineEntry& leak : leaks) {
    const BaselineEntry* known = Find(leak.kind, leak.fingerprint, leak.program);
    std::tuple key = KeyOf(leak);
    if (known != nullptr) std::get<0>(key) = known->program;
    // An entry of any program allows the most of each.
    const auto [at, is_new] = now.try_emplace(key, leak);
    Raise(leak, &at->second);
  }
  std::vector<std::string> lines;
  size_t comments = 0;  // at the end of `lines`, directly above what comes
  for (const Line& line : lines_) {
    if (line.entry == SIZE_MAX) {
      lines.push_back(line.text);
      comments = absl::StripAsciiWhitespace(line.text).empty() ? 0 : comments + 1;
      continue;
    }
    const BaselineEntry& old = entries_[line.entry];
    const auto found = now.find(KeyOf(old));
    const bool only_more = part_seen.contains(old.program);
    const bool is_any = old.program == "*";  // others may need as much as there was
    const bool is_less = found != now.end() && !is_any && IsMoreThan(old, found->second);
    if (found != now.end() && (is_any || only_more)) Raise(old, &found->second);
    const bool looked_for = kinds.Has(old.kind) && programs.contains(old.program);
    if (found != now.end()) {
      if (NumbersOf(found->second) == NumbersOf(old)) {
        done.kept += is_less;
        lines.push_back(line.text);
      } else {
        ++(IsMoreThan(found->second, old) ? done.raised : done.lowered);
        BaselineEntry changed = old;
        changed.bytes = found->second.bytes;
        changed.blocks = found->second.blocks;
        changed.lost = found->second.lost;
        lines.push_back(
            absl::StrCat(BaselineLine(changed), absl::EndsWith(line.text, "\r") ? "\r" : ""));
      }
      now.erase(found);
    } else if (looked_for &&
               suppressed.contains(LostLeakOf(old.program, old.kind, old.fingerprint))) {
      ++done.suppressed;
      lines.push_back(line.text);
    } else if (!looked_for || only_more) {
      done.kept += looked_for;
      lines.push_back(line.text);
    } else {
      ++done.removed;
      lines.resize(lines.size() - comments);
    }
    comments = 0;
  }
  // New lines end as the first one does.
  const char* const end =
      !lines_.empty() && absl::EndsWith(lines_.front().text, "\r") ? "\r\n" : "\n";
  std::string text = lines_.empty() ? std::string(kHeader) : "";
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  std::vector<const BaselineEntry*> added;
  for (const auto& [key, leak] : now) added.push_back(&leak);
  std::sort(added.begin(), added.end(), [](const BaselineEntry* a, const BaselineEntry* b) {
    return std::tie(a->program, a->caller, a->kind, a->fingerprint) <
           std::tie(b->program, b->caller, b->kind, b->fingerprint);
  });
  for (const BaselineEntry* leak : added) absl::StrAppend(&text, BaselineLine(*leak), end);
  done.added = added.size();
  if (changes != nullptr) *changes = done;
  return text;
}

}  // namespace memtrace::report::gate
