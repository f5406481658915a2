#include "tests/report/growth/growth_scenarios.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>

#include "tests/report/trace_builder.h"

namespace memtrace::report {
namespace {

using Verdict = Growth::Verdict;

// Times are shares of the run, which is a second long; the shutdown is behind kEnd.
constexpr double kEnd = 0.98;

struct PlannedAction {
  double time;
  uint32_t site;
  uint64_t address;
  uint32_t size;  // 0: a free
};

// What one site does.
class Script {
 public:
  Script(std::mt19937_64& random, uint32_t site, bool shutdown, uint64_t* next_address,
         std::vector<PlannedAction>* actions)
      : random_(random),
        site_(site),
        shutdown_(shutdown),
        next_address_(next_address),
        actions_(actions) {}

  double Uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int Integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double Exponential(double mean) {
    return std::exponential_distribution<double>(1 / mean)(random_);
  }
  uint32_t Size() { return static_cast<uint32_t>(std::exp(Uniform(3, 7))); }

  uint64_t Alloc(double time, uint32_t size) {
    const uint64_t address = *next_address_ += 0x40;
    actions_->push_back({time, site_, address, std::max(size, 1u)});
    return address;
  }
  void Free(double time, uint64_t address) {
    if (time < kEnd) actions_->push_back({time, site_, address, 0});
  }
  // A block that is freed at `free_time`, unless the run is over by then.
  void Block(double time, double free_time, uint32_t size) {
    Free(std::max(free_time, time), Alloc(time, size));
  }
  void FreeInShutdown(uint64_t address) {
    if (shutdown_) actions_->push_back({Uniform(kEnd + 0.004, 0.9999), site_, address, 0});
  }
  // The times of `n` events that know nothing of each other, in order.
  std::vector<double> Times(int n, double begin, double end) {
    std::vector<double> times;
    for (int i = 0; i < n; ++i) times.push_back(Uniform(begin, end));
    std::sort(times.begin(), times.end());
    return times;
  }

 private:
  std::mt19937_64& random_;
  const uint32_t site_;
  const bool shutdown_;
  uint64_t* const next_address_;
  std::vector<PlannedAction>* const actions_;
};

void Churn(Script& s, int n, double mean_life, double begin, double end) {
  const uint32_t size = s.Size();
  for (const double t : s.Times(n, begin, end)) s.Block(t, t + s.Exponential(mean_life), size);
}

void Teeth(Script& s, int teeth, int blocks, double remaining) {
  const uint32_t size = s.Size();
  std::deque<uint64_t> live;
  for (int tooth = 0; tooth < teeth; ++tooth) {
    const double begin = kEnd * tooth / teeth, length = kEnd / teeth;
    for (int i = 0; i < blocks; ++i)
      live.push_back(s.Alloc(begin + 0.9 * length * i / blocks, size));
    while (static_cast<double>(live.size()) > remaining * blocks) {
      s.Free(begin + 0.95 * length, live.front());
      live.pop_front();
    }
  }
}

// A vector that is filled at an even pace until `end`; it begins small.
void Doubling(Script& s, double begin, double end, double factor) {
  const double last = s.Uniform(1e5, 1e6);  // elements at `end`
  double capacity = 16;
  uint64_t block = s.Alloc(begin, static_cast<uint32_t>(capacity));
  while (capacity < last) {
    const double full = begin + (end - begin) * capacity / last;
    capacity = std::ceil(capacity * factor);
    const uint64_t next = s.Alloc(full, static_cast<uint32_t>(capacity));
    s.Free(full + 1e-7, block);
    block = next;
  }
}

void Burst(Script& s, double begin, double length, int blocks) {
  const uint32_t size = s.Size();
  for (int i = 0; i < blocks; ++i) {
    const double t = begin + length * 0.3 * i / blocks;
    s.Block(t, begin + length * s.Uniform(0.7, 1), size);
  }
}

// One draw a statement: in which order a call's arguments are evaluated is the compiler's choice, and the
// runs are the same by all.
struct Kind {
  const char* name;
  Verdict verdict;
  bool held;  // then it needs a shutdown
  void (*play)(Script& s);
};

const Kind kKinds[] = {
    {"leak of each block", Verdict::kGrowing, false,
     [](Script& s) {
       const uint32_t size = s.Size();
       const double begin = s.Uniform(0, 0.2);
       for (const double t : s.Times(s.Integer(50, 1500), begin, kEnd)) s.Alloc(t, size);
     }},
    {"a few leaks among thousands that go", Verdict::kGrowing, false,
     [](Script& s) {
       Churn(s, 4000, 1e-4, 0, kEnd);
       for (const double t : s.Times(s.Integer(14, 40), 0, kEnd)) s.Alloc(t, 64);
     }},
    {"leaks below a busy level", Verdict::kGrowing, false,
     [](Script& s) {
       Churn(s, 4000, s.Uniform(0.005, 0.03), 0, kEnd);
       for (const double t : s.Times(s.Integer(30, 80), 0, kEnd)) s.Alloc(t, 64);
     }},
    {"leaks among sessions of very different length", Verdict::kGrowing, false,
     [](Script& s) {
       const double life = s.Uniform(0.03, 0.1);
       const int n = s.Integer(3000, 6000);
       const uint32_t size = s.Size();
       for (const double t : s.Times(n, 0, kEnd)) {
         if (s.Uniform(0, 1) < 0.05) {
           s.Alloc(t, size);
         } else {
           s.Block(t, t + s.Exponential(life), size);
         }
       }
     }},
    {"leaks of a program that has much less to do later", Verdict::kGrowing, false,
     [](Script& s) {
       const double life = s.Uniform(0.02, 0.04);
       Churn(s, s.Integer(6000, 12000), life, 0, kEnd * 0.6);
       Churn(s, 500, life, kEnd * 0.6, kEnd * 0.9);
       for (const double t : s.Times(s.Integer(60, 150), 0, kEnd * 0.95)) s.Alloc(t, 64);
     }},
    {"leaks in batches", Verdict::kGrowing, false,
     [](Script& s) {
       const int batches = s.Integer(10, 24);
       for (int i = 0; i < batches; ++i) {
         const double t = kEnd * (i + s.Uniform(0, 0.5)) / batches;
         for (int k = 0; k < 50; ++k) s.Alloc(t + k * 1e-6, 48);
       }
     }},
    {"a leak that begins late", Verdict::kGrowing, false,
     [](Script& s) {
       for (int i = 0; i < 20; ++i) s.Alloc(0.001 * i, 100);
       const double begin = s.Uniform(0.3, 0.6);
       for (const double t : s.Times(s.Integer(60, 600), begin, kEnd)) s.Alloc(t, 100);
     }},
    {"a leak below a sawtooth", Verdict::kGrowing, false,
     [](Script& s) {
       const int blocks = s.Integer(40, 120);
       Teeth(s, s.Integer(12, 40), blocks, 0);
       for (const double t : s.Times(s.Integer(100, 400), 0, kEnd)) s.Alloc(t, 100);
     }},
    {"a leak that slows down to half", Verdict::kGrowing, false,
     [](Script& s) {
       const int n = s.Integer(100, 500);
       for (const double t : s.Times(n, 0, kEnd / 2)) s.Alloc(t, 80);
       for (const double t : s.Times(n / 2, kEnd / 2, kEnd)) s.Alloc(t, 80);
     }},
    {"more traffic all the time", Verdict::kGrowing, false,
     [](Script& s) {
       const int n = s.Integer(1500, 4000);
       const double life = s.Uniform(0.02, 0.05);
       for (int i = 0; i < n; ++i) {
         const double t = kEnd * std::sqrt(s.Uniform(0.0025, 1));
         s.Block(t, t + life * s.Uniform(0.5, 1.5), 200);
       }
     }},
    {"a vector that is filled to the end", Verdict::kGrowing, false,
     [](Script& s) {
       const double factor = s.Integer(0, 1) ? 2 : 1.5;
       const double end = kEnd * s.Uniform(1, 1.2);
       Doubling(s, s.Uniform(0, 0.1), end, factor);
     }},
    {"an arena that takes chunk after chunk", Verdict::kGrowing, false,
     [](Script& s) {
       const int chunks = s.Integer(14, 60);
       for (int i = 0; i < chunks; ++i) s.Alloc(kEnd * (i + s.Uniform(0, 0.8)) / chunks, 65536);
     }},
    {"growth that is freed at the exit", Verdict::kGrowing, true,
     [](Script& s) {
       for (const double t : s.Times(s.Integer(50, 800), 0, kEnd))
         s.FreeInShutdown(s.Alloc(t, 120));
     }},

    {"leaks among others, which are freed at the exit", Verdict::kGrowing, true,
     [](Script& s) {
       Churn(s, 4000, 1e-4, 0, kEnd - 0.005);
       for (const double t : s.Times(s.Integer(30, 200), s.Uniform(0, 0.4), kEnd)) {
         s.FreeInShutdown(s.Alloc(t, 64));
       }
     }},
    {"sessions that are closed at the exit", Verdict::kBounded, false,
     [](Script& s) {
       const double life = s.Uniform(0.05, 0.2);
       const int n = static_cast<int>(s.Uniform(40, 400) / life);
       const uint32_t size = s.Size();
       for (const double t : s.Times(n, 0, kEnd)) {
         const double end = t + s.Exponential(life);
         const uint64_t block = s.Alloc(t, size);
         end < kEnd ? s.Free(end, block) : s.FreeInShutdown(block);
       }
     }},

    {"a cache that fills", Verdict::kBounded, false,
     [](Script& s) {
       const double end = s.Uniform(0.05, 0.4);
       for (const double t : s.Times(s.Integer(50, 1000), 0, end)) s.Alloc(t, 150);
     }},
    {"a cache that is filled by chance", Verdict::kBounded, false,
     [](Script& s) {
       // Each look-up is of any of n keys: what is not there yet is added.
       const int n = s.Integer(60, 600);
       std::vector<bool> known(n);
       for (const double t : s.Times(n * s.Integer(8, 12), 0, kEnd)) {
         const int key = s.Integer(0, n - 1);
         if (!known[key]) s.Alloc(t, 90);
         known[key] = true;
       }
     }},
    {"a cache that throws out the oldest", Verdict::kBounded, false,
     [](Script& s) {
       const size_t capacity = s.Integer(50, 400);
       std::deque<uint64_t> live;
       for (const double t : s.Times(s.Integer(1000, 4000), 0, kEnd)) {
         live.push_back(s.Alloc(t, 100));
         if (live.size() <= capacity) continue;
         s.Free(t + 1e-8, live.front());
         live.pop_front();
       }
     }},
    {"a cache that throws out any", Verdict::kBounded, false,
     [](Script& s) {
       const size_t capacity = s.Integer(50, 400);
       std::vector<uint64_t> live;
       for (const double t : s.Times(s.Integer(1000, 4000), 0, kEnd)) {
         live.push_back(s.Alloc(t, 100));
         if (live.size() <= capacity) continue;
         std::swap(live[s.Integer(0, static_cast<int>(capacity) - 1)], live.back());
         s.Free(t + 1e-8, live.back());
         live.pop_back();
       }
     }},
    {"what is set up at the start", Verdict::kBounded, false,
     [](Script& s) {
       const double end = s.Uniform(0.005, 0.08);
       for (const double t : s.Times(s.Integer(5, 500), 0, end)) s.Alloc(t, 70);
     }},
    {"what comes and goes at an even pace", Verdict::kBounded, false,
     [](Script& s) {
       const double life = s.Uniform(0.0005, 0.05);
       Churn(s, s.Integer(1000, 4000), life, 0, kEnd);
     }},
    {"lifetimes of all lengths", Verdict::kBounded, false,
     [](Script& s) {
       const double shape = s.Uniform(1.2, 2);
       for (const double t : s.Times(s.Integer(1500, 4000), 0, kEnd)) {
         s.Block(t, t + 0.0005 * std::pow(s.Uniform(1e-9, 1), -1 / shape), 60);
       }
     }},
    {"temporary blocks", Verdict::kBounded, false,
     [](Script& s) {
       for (const double t : s.Times(s.Integer(500, 3000), 0, kEnd)) s.Block(t, t + 1e-7, s.Size());
     }},
    {"a pool taken once", Verdict::kBounded, false,
     [](Script& s) {
       const uint32_t size = 1 << s.Integer(10, 22);
       s.Alloc(s.Uniform(0, 0.5), size);
     }},
    {"a vector that was filled", Verdict::kBounded, false,
     [](Script& s) {
       const double factor = s.Integer(0, 1) ? 2 : 1.5;
       Doubling(s, 0, s.Uniform(0.02, 0.35), factor);
     }},
    {"growth that ended", Verdict::kBounded, false,
     [](Script& s) {
       const double end = s.Uniform(0.4, 0.6);
       for (const double t : s.Times(s.Integer(50, 600), 0, end)) s.Alloc(t, 110);
     }},
    {"growth that ended late", Verdict::kBounded, false,
     [](Script& s) {
       const double end = s.Uniform(0.6, 0.77);
       for (const double t : s.Times(s.Integer(50, 600), 0, end)) s.Alloc(t, 130);
     }},
    {"a few blocks now and then", Verdict::kBounded, false,
     [](Script& s) {
       for (const double t : s.Times(s.Integer(1, 4), 0, kEnd)) s.Alloc(t, s.Size());
     }},
    {"work that is under way at the end", Verdict::kBounded, false,
     [](Script& s) {
       Churn(s, s.Integer(500, 2000), 0.002, 0, kEnd);
       for (const double t : s.Times(s.Integer(20, 80), kEnd - 0.02, kEnd)) s.Alloc(t, 64);
     }},
    {"connections that stay a while", Verdict::kBounded, false,
     [](Script& s) {
       const double life = s.Uniform(0.05, 0.15);
       for (const double t : s.Times(s.Integer(400, 1500), 0, kEnd)) {
         s.Block(t, t + life * s.Uniform(0.7, 1.3), 500);
       }
     }},
    {"sessions of very different length", Verdict::kBounded, false,
     [](Script& s) {
       const double life = s.Uniform(0.05, 0.2);
       const double level = s.Uniform(40, 400);
       Churn(s, static_cast<int>(level / life), life, 0, kEnd);
     }},

    {"one burst", Verdict::kBurst, false,
     [](Script& s) {
       Churn(s, s.Integer(0, 500), 0.002, 0, kEnd);
       const int blocks = s.Integer(200, 900);
       const double length = s.Uniform(0.03, 0.15);
       Burst(s, s.Uniform(0.1, 0.7), length, blocks);
     }},
    {"a burst at the start", Verdict::kBurst, false,
     [](Script& s) {
       const int blocks = s.Integer(50, 600);
       Burst(s, 0, s.Uniform(0.03, 0.12), blocks);
     }},
    {"two bursts", Verdict::kBurst, false,
     [](Script& s) {
       const int blocks = s.Integer(100, 500);
       Burst(s, s.Uniform(0.1, 0.3), 0.06, blocks);
       Burst(s, s.Uniform(0.5, 0.8), 0.06, blocks);
     }},
    {"a large block for a moment", Verdict::kBurst, false,
     [](Script& s) {
       const double t = s.Uniform(0, 0.8);
       const uint32_t size = 1 << s.Integer(21, 26);
       s.Block(t, t + s.Uniform(0.01, 0.1), size);
     }},

    {"slow teeth", Verdict::kSawtooth, false,
     [](Script& s) {
       const int blocks = s.Integer(100, 400);
       Teeth(s, s.Integer(4, 20), blocks, 0);
     }},
    {"fast teeth", Verdict::kSawtooth, false,
     [](Script& s) {
       const int blocks = s.Integer(12, 30);
       Teeth(s, s.Integer(150, 400), blocks, 0);
     }},
    {"a large block, time and again", Verdict::kSawtooth, false,
     [](Script& s) {
       const int teeth = s.Integer(5, 14);
       for (int i = 0; i < teeth; ++i) {
         const double t = kEnd * (i + s.Uniform(0.2, 0.4)) / teeth;
         s.Block(t, t + kEnd * s.Uniform(0.2, 0.5) / teeth, 4 << 20);
       }
     }},
    {"teeth that leave a part", Verdict::kSawtooth, false,
     [](Script& s) {
       const double remaining = s.Uniform(0.05, 0.25);
       const int blocks = s.Integer(150, 400);
       Teeth(s, s.Integer(6, 30), blocks, remaining);
     }},
    {"up and down by turns", Verdict::kSawtooth, false,
     [](Script& s) {
       const int waves = s.Integer(4, 15), blocks = s.Integer(100, 300);
       const double length = kEnd / waves;
       for (int wave = 0; wave < waves; ++wave) {
         for (int i = 0; i < blocks; ++i) {
           const double t = wave * length + length / 2 * i / blocks;
           s.Block(t, (2 * wave + 0.99) * length - t, 100);
         }
       }
     }},

    {"a configuration", Verdict::kHeld, true,
     [](Script& s) {
       for (const double t : s.Times(s.Integer(3, 300), 0, 0.05))
         s.FreeInShutdown(s.Alloc(t, s.Size()));
     }},
    {"a cache that is freed at the exit", Verdict::kHeld, true,
     [](Script& s) {
       const double end = s.Uniform(0.1, 0.4);
       for (const double t : s.Times(s.Integer(50, 500), 0, end)) {
         s.FreeInShutdown(s.Alloc(t, 100));
       }
     }},
    {"one object", Verdict::kHeld, true,
     [](Script& s) {
       const uint32_t size = s.Size();
       s.FreeInShutdown(s.Alloc(s.Uniform(0, 0.6), size));
     }},
};

}  // namespace

World MakeWorld(uint64_t seed, int variants, bool shutdown) {
  std::mt19937_64 random(seed);
  std::vector<PlannedAction> actions;
  World world;
  uint64_t next_address = 0x100000000;
  for (int variant = 0; variant < variants; ++variant) {
    for (const Kind& kind : kKinds) {
      if (kind.held && !shutdown) continue;
      const auto site = static_cast<uint32_t>(world.sites.size());
      world.sites.push_back({kind.name, kind.verdict, kind.held});
      Script script(random, site, shutdown, &next_address, &actions);
      kind.play(script);
    }
  }
  // A free is never before its block.
  std::stable_sort(actions.begin(), actions.end(),
                   [](const PlannedAction& a, const PlannedAction& b) { return a.time < b.time; });
  TraceBuilder trace;
  ThreadScript& thread = trace.Thread(1);
  thread.At(1);
  for (uint32_t site = 0; site < world.sites.size(); ++site) {
    thread.Node(site + 1, PcOfScenario(site));
  }
  uint64_t stamped = 1;
  size_t since_flush = 0;
  for (const PlannedAction& action : actions) {
    if (action.time > 1) break;  // beyond the end of the run
    const auto now = static_cast<uint64_t>(action.time * 1e9) + 1000;
    if (now >= stamped + 1000) thread.At(stamped = now);
    if (action.size == 0) {
      thread.Free(action.address);
    } else {
      thread.Malloc(action.address, action.size, action.site + 1, 8);
    }
    if (++since_flush % 4000 == 0) thread.Flush();
  }
  thread.At(shutdown ? 1'000'002'000 : static_cast<uint64_t>(kEnd * 1e9) + 2000);
  if (shutdown) trace.End(0, 1'000'003'000);
  world.trace = trace.Build();
  return world;
}

}  // namespace memtrace::report
