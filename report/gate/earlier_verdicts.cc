#include "report/gate/earlier_verdicts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "report/base/output_file.h"
#include "report/gate/formats.h"

namespace memtrace::report::gate {
namespace {

bool IsFile(const struct stat& file, int fd) {
  struct stat open;
  return fstat(fd, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino;
}

// /dev/stdout and /dev/fd/5 are links to what somebody has opened for us, who would find nothing of
// what is written to a file that has no name any more.
bool IsGivenOpen(const std::string& path, const struct stat& file) {
  constexpr int kUsualLimit = 1024;
  if (IsFile(file, STDOUT_FILENO)) return true;
  struct stat link;
  if (lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return false;
  for (int fd = 0; fd < kUsualLimit; ++fd) {
    if (IsFile(file, fd)) return true;
  }
  return false;
}

// Is it JSON or XML, as what a CI server reads?
bool IsForServers(const std::string& path) {
  struct stat st;
  if (path.empty() || stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
  if (IsGivenOpen(path, st)) return false;
  const int first = std::ifstream(path).get();
  return first == '<' || first == '{' || first == '[';
}

bool AreOneFile(const std::string& path, const std::string& other) {
  struct stat one, two;
  return stat(path.c_str(), &one) == 0 && stat(other.c_str(), &two) == 0 &&
         one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

bool NamesAFormat(const std::string& output) {
  const size_t equals = output.find('=');
  return equals != output.npos && ParseGateFormat(output.substr(0, equals)).ok();
}

}  // namespace

std::string OutputPath(const std::string& output) {
  const size_t equals = output.find('=');
  const bool has_format = equals != output.npos &&
                          output.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == equals;
  return has_format ? output.substr(equals + 1) : output;
}

std::vector<std::string> OutputsAmong(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  const bool may_be_the_programs =
      end == words.end() && std::find(words.begin(), end, "--run") != end;
  std::vector<std::string> outputs, others;
  for (auto word = words.begin(); word != end; ++word) {
    const bool is_short = absl::StartsWith(*word, "-") && !absl::StartsWith(*word, "--");
    const size_t letter = is_short ? word->find_first_not_of("-q") : word->npos;  // -qo FILE
    std::string output;
    if (letter != word->npos && (*word)[letter] == 'o' && letter + 1 < word->size()) {
      output = word->substr(letter + 1);
    } else if ((letter != word->npos && (*word)[letter] == 'o') || *word == "--output") {
      if (++word == end) break;
      output = *word;
    } else if (absl::StartsWith(*word, "--output=")) {
      output = word->substr(word->find('=') + 1);
    } else {
      others.push_back(*word);
      if (const size_t equals = word->find('='); equals != word->npos) {
        others.push_back(word->substr(equals + 1));
      }
      continue;
    }
    if (!may_be_the_programs || NamesAFormat(output)) outputs.push_back(OutputPath(output));
  }
  std::erase_if(outputs, [&](const std::string& path) {
    return path.empty() || path == "-" ||
           std::any_of(others.begin(), others.end(),
                       [&](const std::string& other) { return AreOneFile(path, other); });
  });
  return outputs;
}

std::vector<std::string> RemoveVerdicts(const std::vector<std::string>& paths) {
  std::vector<std::string> removed;
  for (const std::string& path : paths) {
    if (!IsForServers(path)) continue;
    const auto place = BehindLinks(path);  // as what is written there goes through them
    if (place.ok() && unlink(place->c_str()) == 0) removed.push_back(path);
  }
  return removed;
}

}  // namespace memtrace::report::gate
