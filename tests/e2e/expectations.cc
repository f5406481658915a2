#include "tests/e2e/expectations.h"

#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace memtrace::e2e {
namespace {

// A place in a stack: a line, a function, or both.
struct Place {
  std::optional<int> line;
  std::string function;
};

// "at @name in Function", each part optional; the pattern has two groups for it.
constexpr char kPlace[] = R"((?: at @(\w+))?(?: in (\w+))?)";

Place PlaceOf(const Example& example, const std::string& tag, const std::string& function) {
  if (tag.empty() && function.empty()) throw std::runtime_error("no line and no function");
  Place place{.line = std::nullopt, .function = function};
  if (!tag.empty()) {
    auto line = example.tags.find(tag);
    if (line == example.tags.end()) throw std::runtime_error("no line is marked @" + tag);
    place.line = line->second;
  }
  return place;
}

// Whole names: "Work" is not "Worker", but is "(anonymous namespace)::Work(int)".
bool IsFunction(const std::string& name, const std::string& wanted) {
  return std::regex_search(name, std::regex("(^|::)" + wanted + "($|[^\\w])"));
}

// Is frame `index` of that function, or inlined into one that is?
bool IsInFunction(const Json& stack, size_t index, const std::string& function) {
  for (; index < stack.size(); ++index) {
    if (IsFunction(stack[index].value("function", ""), function)) return true;
    if (!stack[index].value("inlined", false)) break;
  }
  return false;
}

bool Contains(const Example& example, const Json& stack, const Place& place) {
  for (size_t i = 0; i < stack.size(); ++i) {
    if (place.line) {
      const std::string file = std::filesystem::path(stack[i].value("file", "")).filename();
      if (file != example.file || stack[i].value("line", 0) != *place.line) continue;
    }
    if (place.function.empty() || IsInFunction(stack, i, place.function)) return true;
  }
  return false;
}

std::vector<Json> EntriesAt(const Example& example, const Json& report, const char* list,
                            const Place& place) {
  std::vector<Json> entries;
  for (const Json& entry : report.at(list)) {
    if (Contains(example, entry.at("stack"), place)) entries.push_back(entry);
  }
  return entries;
}

std::string Listing(const std::vector<Json>& entries) {
  std::ostringstream text;
  text << entries.size() << " entries";
  for (const Json& entry : entries) text << "\n" << entry.dump();
  return text.str();
}

double Number(const Json& value, const std::string& what) {
  if (!value.is_number()) throw std::runtime_error(what + " is no number: " + value.dump());
  return value.get<double>();
}

std::string Compare(const std::string& what, double is, const std::string& comparison,
                    double wanted) {
  const bool holds = comparison == "==" ? is == wanted
                     : comparison == ">=" ? is >= wanted
                                          : is <= wanted;
  std::ostringstream text;
  text.precision(15);
  if (!holds) text << what << " is " << is;
  return text.str();
}

// "key == number, key == number" over the sums of the entries' members.
std::string CheckMembers(const std::vector<Json>& entries, const std::string& members) {
  static const std::regex kMember(R"(\s*(\w+) (==|>=|<=) (\d+)\s*(,|$))");
  size_t read = 0;
  std::string problems;
  for (std::sregex_iterator it(members.begin(), members.end(), kMember), end; it != end; ++it) {
    if (static_cast<size_t>(it->position()) != read) break;
    read += it->length();
    double sum = 0;
    for (const Json& entry : entries) {
      if (!entry.contains((*it)[1].str())) {
        return "no member " + (*it)[1].str() + ": " + entry.dump();
      }
      sum += Number(entry.at((*it)[1].str()), (*it)[1]);
    }
    const std::string problem = Compare((*it)[1], sum, (*it)[2], std::stod((*it)[3]));
    if (!problem.empty()) problems += problem + "; ";
  }
  if (read != members.size()) throw std::runtime_error("cannot read the members: " + members);
  return problems.empty() ? "" : problems + Listing(entries);
}

// Of one place there is a record for each kind, lost and still reachable.
std::string CheckLeak(const std::vector<Json>& leaks, double bytes, double blocks) {
  double all_bytes = 0, all_blocks = 0;
  for (const Json& leak : leaks) {
    all_bytes += Number(leak.at("bytes"), "bytes");
    all_blocks += Number(leak.at("blocks"), "blocks");
  }
  const bool same = !leaks.empty() && all_bytes == bytes && all_blocks == blocks;
  return same ? "" : Listing(leaks);
}

// The time of the one live block that was allocated at a mark.
double TimeOf(const Example& example, const Json& report, const std::string& tag) {
  const auto leaks = EntriesAt(example, report, "leaks", PlaceOf(example, tag, ""));
  if (leaks.size() != 1) throw std::runtime_error("@" + tag + ": " + Listing(leaks));
  return leaks[0].at("first_time_s").get<double>();
}

std::string CheckFaults(const Example& example, const Json& report, const std::string& from_tag,
                        const std::string& to_tag, double wanted) {
  const double from = TimeOf(example, report, from_tag), to = TimeOf(example, report, to_tag);
  const double interval = report.at("timeline").at("interval_s");
  double faults = 0;
  std::ostringstream points;
  for (const Json& point : report.at("timeline").at("points")) {
    const double time = point.at("time_s").get<double>();
    const double minor = point.at("minor_faults").get<double>();
    if (minor != 0) points << " " << minor << " by " << time << " s;";
    if (time > from && time <= to + interval) faults += minor;
  }
  std::ostringstream where;
  where << "the count from " << from << " s to " << to << " s, of" << points.str();
  return Compare(where.str(), faults, "==", wanted);
}

}  // namespace

Example ReadExample(const std::string& source_path) {
  Example example{.file = std::filesystem::path(source_path).filename()};
  static const std::regex kExpect(R"(^//\s+expect( child)?( faults)?: (.*\S)\s*$)");
  static const std::regex kTag(R"(// @(\w+)$)");
  std::istringstream lines(ReadFile(source_path));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_match(line, match, kExpect)) {
      example.expectations.push_back({.text = match[3], .child = match[1].matched, .faults = match[2].matched});
    } else if (std::regex_search(line, match, kTag)) {
      example.tags[match[1]] = number;
    }
  }
  return example;
}

std::string Check(const Example& example, const Expectation& expectation, const Json& report,
                  const std::string& text) {
  static const std::string kAt = kPlace;
  static const std::regex kLeak("leak (\\d+) bytes in (\\d+) blocks?" + kAt);
  static const std::regex kNoLeak("no leak" + kAt);
  static const std::regex kFirst(R"(first leak is @(\w+))");
  static const std::regex kSite("site" + kAt + ": (.*)");
  static const std::regex kResident("resident site" + kAt + ": (.*)");
  static const std::regex kPointer(R"((/[\w/]+) (==|>=|<=) (\d+))");
  static const std::regex kThread("thread \"([^\"]+)\" (.*)");
  static const std::regex kMapping("mapping (\\w+)" + kAt + ": (.*)");
  static const std::regex kMappingLive("mapping live bytes of (\\w+)" + kAt + " == (\\d+)");
  static const std::regex kFaults(R"(minor faults from @(\w+) to @(\w+) == (\d+))");
  static const std::regex kWords("words \"(.*)\"");
  static const std::regex kText("text \"(.*)\"");
  const std::string& words = expectation.text;
  std::smatch m;
  if (std::regex_match(words, m, kLeak)) {
    return CheckLeak(EntriesAt(example, report, "leaks", PlaceOf(example, m[3], m[4])),
                     std::stod(m[1]), std::stod(m[2]));
  }
  if (std::regex_match(words, m, kNoLeak)) {
    const auto leaks = EntriesAt(example, report, "leaks", PlaceOf(example, m[1], m[2]));
    return leaks.empty() ? "" : Listing(leaks);
  }
  if (std::regex_match(words, m, kFirst)) {
    const Json& leaks = report.at("leaks");
    if (leaks.empty()) return "there is no leak";
    const bool is = Contains(example, leaks[0].at("stack"), PlaceOf(example, m[1], ""));
    return is ? "" : leaks[0].dump();
  }
  if (std::regex_match(words, m, kSite)) {
    const auto sites = EntriesAt(example, report, "sites", PlaceOf(example, m[1], m[2]));
    if (sites.empty()) return "there is no such site";
    return CheckMembers(sites, m[3]);
  }
  if (std::regex_match(words, m, kResident)) {
    if (report.at("resident").empty()) return "there is no snapshot of the pages";
    const auto sites =
        EntriesAt(example, report.at("resident").back(), "sites", PlaceOf(example, m[1], m[2]));
    return sites.empty() ? "no such site holds pages" : CheckMembers(sites, m[3]);
  }
  if (std::regex_match(words, m, kPointer)) {
    const Json::json_pointer pointer(m[1]);
    if (!report.contains(pointer)) return "the report has no " + m[1].str();
    return Compare(m[1], Number(report.at(pointer), m[1]), m[2], std::stod(m[3]));
  }
  if (std::regex_match(words, m, kThread)) {
    std::vector<Json> threads;
    for (const Json& thread : report.at("threads")) {
      if (thread.at("name") == m[1].str()) threads.push_back(thread);
    }
    if (threads.size() != 1) return Listing(threads);
    return CheckMembers(threads, m[2]);
  }
  if (std::regex_match(words, m, kMapping) || std::regex_match(words, m, kMappingLive)) {
    std::vector<Json> mappings;
    const Place place = PlaceOf(example, m[2], m[3]);
    for (const Json& mapping : EntriesAt(example, report, "mappings", place)) {
      if (mapping.at("kind") == m[1].str()) mappings.push_back(mapping);
    }
    if (mappings.empty()) return "there is no such mapping in " + report.at("mappings").dump();
    const std::string members = m[4];
    const bool number = members.find_first_not_of("0123456789") == std::string::npos;
    return CheckMembers(mappings, number ? "live_bytes == " + members : members);
  }
  if (std::regex_match(words, m, kFaults)) {
    return CheckFaults(example, report, m[1], m[2], std::stod(m[3]));
  }
  if (std::regex_match(words, m, kWords)) {
    const std::regex wanted(m[1].str());
    for (const Json& sentence : report.at("faults").at("words")) {
      if (std::regex_match(sentence.get<std::string>(), wanted)) return "";
    }
    return "no such sentence in " + report.at("faults").at("words").dump();
  }
  if (std::regex_match(words, m, kText)) {
    return std::regex_search(text, std::regex(m[1].str())) ? "" : "the text has no such words";
  }
  throw std::runtime_error("cannot understand the expectation: " + words);
}

}  // namespace memtrace::e2e
