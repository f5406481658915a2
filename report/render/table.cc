#include "report/render/table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/words/escape.h"

namespace memtrace::report::render {
namespace {

constexpr size_t kGoodLast = 16;  // below this a name says little: space is for it, too
constexpr size_t kMinLast = 8;  // below this it says nothing
constexpr size_t kGoodBelow = 40;  // for a name with its place, which numbers do not stand before

std::string Pad(absl::string_view text, size_t width, bool left) {
  const size_t columns = words::DisplayWidth(text);
  const std::string space(width > columns ? width - columns : 0, ' ');
  return left ? absl::StrCat(text, space) : absl::StrCat(space, text);
}

}  // namespace

std::string TextTable::Render(const Style& style, size_t indent) const {
  std::vector<size_t> widths;
  size_t used = indent;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const absl::string_view header = columns_[i].header;
    size_t width = words::DisplayWidth(header) + (columns_[i].sorted_by ? 1 : 0);
    for (const Row& row : rows_) width = std::max(width, words::DisplayWidth(row.cells[i]));
    widths.push_back(width);
    used += width;
  }
  // Names in two neighbouring columns need two blanks to be told apart.
  const bool crowded = columns_.size() >= 6 && !style.wide();
  const bool named = !last_header_.empty();  // else a bar, which may be short
  const size_t wanted = named ? kGoodLast : kMinLast;
  const size_t gap = crowded || used + 2 * columns_.size() + wanted > style.width ? 1 : 2;
  used += gap * columns_.size() + (gap == 1 && named ? 1 : 0);  // one more before the name
  const size_t last_width =
      std::max(named ? kMinLast : 0, style.width > used ? style.width - used : 0);

  // Below the last column, or further left where that is narrow.
  const size_t below_indent =
      std::min(used + 2, style.width - std::min(style.width, kGoodBelow));

  std::string out;
  const std::string margin(indent, ' ');
  std::string header;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string text = absl::StrCat(
        columns_[i].header, columns_[i].sorted_by ? (style.utf8 ? "\u25be" : "v") : "");
    absl::StrAppend(&header, Pad(text, widths[i], columns_[i].left), std::string(gap, ' '));
  }
  absl::StrAppend(&header, gap == 1 && named ? " " : "",
                  words::KeepBeginning(last_header_, last_width, style.ellipsis()));
  absl::StripTrailingAsciiWhitespace(&header);
  absl::StrAppend(&out, margin, style.Paint(Ink::kDim, header), "\n");
  for (const Row& row : rows_) {
    std::string line = margin;
    for (size_t i = 0; i < columns_.size(); ++i) {
      absl::StrAppend(&line, Pad(row.cells[i], widths[i], columns_[i].left),
                      std::string(gap, ' '));
    }
    if (gap == 1 && named && row.last) absl::StrAppend(&line, " ");
    if (row.last) absl::StrAppend(&line, row.last(last_width));
    absl::StripTrailingAsciiWhitespace(&line);
    absl::StrAppend(&out, line, "\n");
    if (!row.below) continue;
    for (const std::string& under : row.below(style.width - below_indent)) {
      absl::StrAppend(&out, std::string(below_indent, ' '), under, "\n");
    }
  }
  return out;
}

}  // namespace memtrace::report::render
