#include "report/base/map_line.h"

#include "report/base/numbers.h"

namespace memtrace::report {
namespace {

// Takes a word off the begin, and the blanks behind it.
std::string_view TakeField(std::string_view* line) {
  const size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  line->remove_prefix(std::min(line->find_first_not_of(' '), line->size()));
  return word;
}

}  // namespace

bool ParseMapLine(std::string_view text, MapLine* line) {
  const std::string_view range = TakeField(&text);
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos || !ParseDigits(range.substr(0, dash), 16, &line->begin) ||
      !ParseDigits(range.substr(dash + 1), 16, &line->end) || line->end < line->begin) {
    return false;
  }
  line->permissions = TakeField(&text);
  if (line->permissions.size() != 4) return false;
  if (!ParseDigits(TakeField(&text), 16, &line->offset)) return false;
  line->device = TakeField(&text);
  if (!ParseDigits(TakeField(&text), 10, &line->inode)) return false;
  line->name = text;
  return true;
}

std::vector<MapLine> LinesOf(std::string_view text) {
  std::vector<MapLine> lines;
  ForEachMapLine(text, [&lines](const MapLine& line) { lines.push_back(line); });
  return lines;
}

}  // namespace memtrace::report
