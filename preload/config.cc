#include "preload/config.h"

#include <signal.h>

#include <utility>

#include "preload/raw_log.h"
#include "preload/sampler.h"
#include "preload/segments.h"
#include "preload/trace_name.h"

namespace memtrace {
namespace {

constexpr std::string_view kPrefix = "MEMTRACE_";

// One function for each parser named in flags.inc; false refuses the value.
struct Setter {
  Config& config;

  bool Out(std::string_view value) {
    if (value.empty() || value.size() > 4000) return false;
    config.out.Clear();
    config.out << value;
    return true;
  }
  bool Stacks(std::string_view value) { return Either(value, "all", "off", &config.stacks); }
  bool FreeStacks(std::string_view value) {
    return Either(value, "on", "off", &config.free_stacks);
  }
  bool Children(std::string_view value) { return Either(value, "follow", "off", &config.children); }
  bool Join(std::string_view value) { return Either(value, "1", "0", &config.join); }
  bool CrossCheck(std::string_view value) {
    uint64_t number;
    if (value.find_first_not_of("0123456789") != std::string_view::npos ||
        !ParseBytes(value, &number) || number > UINT32_MAX) {
      return false;
    }
    config.cross_check = static_cast<uint32_t>(number);
    return true;
  }
  bool MaxBytes(std::string_view value) {
    if (!ParseBytes(value, &config.max_bytes)) return false;
    if (config.max_bytes > INT64_MAX) config.max_bytes = INT64_MAX;  // as long as a file can be
    return true;
  }
  bool Keep(std::string_view value) {
    return Either(value, "newest", "oldest", &config.keep_newest);
  }
  bool SampleBytes(std::string_view value) {
    uint64_t bytes;
    if (!ParseBytes(value, &bytes) || bytes > kMaxSampleBytes) return false;
    config.sample_bytes = bytes;
    return true;
  }
  bool SampleSeed(std::string_view value) { return ParseBytes(value, &config.sample_seed); }
  bool WhenToScan(std::string_view value) {
    const bool both = value == "both";
    const bool early = both || value == "exit-early";
    const bool late = both || value == "exit";
    if (!early && !late && value != "off") return false;
    config.leak_check = {early, late};
    return true;
  }
  // Not one that cannot be caught, nor one that libc keeps for itself, nor one that a fault raises:
  // its handler would return to the fault.
  bool LeakSignal(std::string_view value) {
    uint64_t number;
    if (value.find_first_not_of("0123456789") != std::string_view::npos ||
        !ParseBytes(value, &number) || number > 64 || number == 9 || number == 19 ||
        number == 32 || number == 33 || number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
        number == SIGILL || number == SIGTRAP || number == SIGSYS) {
      return false;
    }
    config.leak_signal = static_cast<uint32_t>(number);
    return true;
  }
  bool Faults(std::string_view value) {
    constexpr std::pair<std::string_view, FaultMode> kModes[] = {
        {"off", FaultMode::kOff},
        {"auto", FaultMode::kAuto},
        {"user", FaultMode::kUser},
        {"snapshots", FaultMode::kSnapshots}};
    for (const auto& [name, mode] : kModes) {
      if (value != name) continue;
      config.faults = mode;
      return true;
    }
    return false;
  }

  static bool Either(std::string_view value, std::string_view yes, std::string_view no, bool* out) {
    if (value != yes && value != no) return false;
    *out = value == yes;
    return true;
  }
};

struct Flag {
  std::string_view name;
  bool (Setter::*set)(std::string_view);
  std::string_view takes;
};

constexpr Flag kFlags[] = {
#define MEMTRACE_FLAG(name, parser, takes) {name, &Setter::parser, takes},
#include "preload/flags.inc"
#undef MEMTRACE_FLAG
};

// At most one character more, less or other, or two neighbours in the wrong order.
bool AlmostEqual(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  size_t same = 0;
  while (same < a.size() && a[same] == b[same]) ++same;
  if (a.size() == b.size() && same + 1 < a.size() && a[same] == b[same + 1] &&
      a[same + 1] == b[same]) {
    return From(a, same + 2) == From(b, same + 2);
  }
  return From(a, same + (a.size() == b.size())) == From(b, same + 1);
}

// The flag that somebody who wrote `name` may have meant: OUTPUT for OUT, SAMPLE for
// SAMPLE_BYTES, STACK for STACKS. Empty: none; other tools have variables of this prefix, too,
// and OUT_DIR may be one.
std::string_view FlagMeantBy(std::string_view name) {
  std::string_view meant;
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return {};
    const bool longer = name.starts_with(flag.name) && name[flag.name.size()] != '_';
    const bool shorter =
        !name.empty() && flag.name.starts_with(name) && flag.name[name.size()] == '_';
    if (meant.empty() && (longer || shorter || AlmostEqual(name, flag.name))) meant = flag.name;
  }
  return meant;
}

// With huge pages of a size of their own the heaps of glibc's arenas have other sizes and places.
// True where any of the tunables asks for that: which of two glibc takes is not known here, and
// heaps that are not where they are looked for would end the process.
bool AsksForHugeHeaps(std::string_view tunables) {
  constexpr std::string_view kName = "glibc.malloc.hugetlb=";
  for (size_t at = 0; (at = tunables.find(kName, at)) != std::string_view::npos;) {
    const bool is_whole = at == 0 || tunables[at - 1] == ':' || tunables[at - 1] == '=';
    at += kName.size();
    const std::string_view value = From(tunables, at);
    if (is_whole && !value.empty() && value != "0" && value != "1" && !value.starts_with("0:") &&
        !value.starts_with("1:")) {
      return true;
    }
  }
  return false;
}

constexpr bool IsDigitOfSize(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view WithoutBlanks(std::string_view text) {
  constexpr auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// 1024 for "K", "kb" and "KiB", its powers up to T, 1 for "" and "B". 0: there is no such unit.
constexpr uint64_t UnitOfSize(std::string_view unit) {
  constexpr auto is = [](char c, char lower) { return c == lower || c == lower - 'a' + 'A'; };
  if (unit.empty() || (unit.size() == 1 && is(unit[0], 'b'))) return 1;
  uint64_t bytes = 1;
  for (const char letter : {'k', 'm', 'g', 't'}) {
    bytes <<= 10;
    if (!is(unit[0], letter)) continue;
    unit.remove_prefix(1);
    if (unit.size() == 2 && is(unit[0], 'i')) unit.remove_prefix(1);
    return unit.empty() || (unit.size() == 1 && is(unit[0], 'b')) ? bytes : 0;
  }
  return 0;
}

}  // namespace

bool ParseBytes(std::string_view text, uint64_t* bytes) {
  text = WithoutBlanks(text);
  uint64_t whole = 0;
  double fraction = 0, place = 1;
  size_t at = 0, points = 0;
  for (; at < text.size() && (IsDigitOfSize(text[at]) || text[at] == '.'); ++at) {
    const auto digit = static_cast<unsigned>(text[at] - '0');
    if (text[at] == '.') {
      if (++points == 2) return false;
    } else if (points != 0) {
      fraction += (place /= 10) * digit;
    } else if (__builtin_mul_overflow(whole, 10u, &whole) ||
               __builtin_add_overflow(whole, digit, &whole)) {
      return false;
    }
  }
  const uint64_t unit = UnitOfSize(WithoutBlanks(From(text, at)));
  if (at == points || unit == 0 || (points != 0 && unit == 1)) return false;
  if (__builtin_mul_overflow(whole, unit, &whole)) return false;
  // A part of a unit, and less than 2^41: as near as a double is.
  const auto part = static_cast<uint64_t>(fraction * static_cast<double>(unit) + 0.5);
  return !__builtin_add_overflow(whole, part, bytes);
}

namespace {

// Takes the entries of an environment, in their order.
class Parser {
 public:
  Parser(Config& config, bool (*may_say)()) : config_(config), may_say_(may_say), setter_{config} {
    config.out.Clear();
    config.out << kDefaultTraceName;
  }

  void Take(std::string_view entry) {
    if (entry.starts_with("GCONV_PATH=")) {
      config_.gconv_path.Clear();
      config_.gconv_path << From(entry, 11);
    }
    // glibc before 2.39 puts an end behind each tunable that it knows: what follows looks like
    // entries, and may begin with anything.
    in_tunables_ |= entry.starts_with("GLIBC_TUNABLES=");
    if (in_tunables_) config_.glibc_has_huge_heaps |= AsksForHugeHeaps(entry);
    if (!entry.starts_with(kPrefix)) return;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) return;
    const std::string_view name = From(First(entry, equals), kPrefix.size());
    const std::string_view value = From(entry, equals + 1);
    const std::string_view meant = FlagMeantBy(name);
    if (!meant.empty() && MaySay()) {
      RawLog("MEMTRACE_", First(name, 100), " is ignored: no variable has this name; MEMTRACE_",
             meant, " has");
    }
    for (const Flag& flag : kFlags) {
      if (flag.name != name) continue;
      if (!(setter_.*flag.set)(value) && MaySay()) {
        RawLog("MEMTRACE_", name, "=", First(value, 100), " is ignored: it takes ", flag.takes);
      }
    }
  }

  void Finish() {
    if (config_.keep_newest && config_.max_bytes < Segments::kSmallestFile) {
      config_.keep_newest = false;
      if (MaySay()) {
        RawLog("MEMTRACE_KEEP=newest is ignored: it needs MEMTRACE_MAX_BYTES of 1M or more, in "
               "which the rings of the threads and the newest events have room");
      }
    }
    config_.usual_stacks = config_.stacks && config_.join && config_.cross_check == 0;
  }

 private:
  bool MaySay() const { return may_say_ == nullptr || may_say_(); }

  Config& config_;
  bool (*const may_say_)();
  Setter setter_;
  bool in_tunables_ = false;
};

}  // namespace

void Config::Parse(std::string_view environment, bool (*may_say)()) {
  Parser parser(*this, may_say);
  while (!environment.empty()) {
    const size_t end = environment.find('\0');
    parser.Take(First(environment, end));
    environment.remove_prefix(end == std::string_view::npos ? environment.size() : end + 1);
  }
  parser.Finish();
}

void Config::Parse(const char* const* environment, bool (*may_say)()) {
  Parser parser(*this, may_say);
  for (; *environment != nullptr; ++environment) parser.Take(*environment);
  parser.Finish();
}

}  // namespace memtrace
