// Lambdas, std::function, threads, templates of a header, static initialisation.
#include "keep.h"

#include <algorithm>
#include <thread>

namespace jobs {
namespace {

std::vector<Job> g_jobs;

struct Config {
  Config() : buffer(Keep(new char[5001])) {}
  char* buffer;
} g_config;

char* g_early = Keep(new char[5002]);

void Submit(Job job) { g_jobs.push_back(std::move(job)); }

void Drain() {
  for (const Job& job : g_jobs) job(1);
}

void Work(int n) {
  const auto twice = [](int k) { return Keep(new char[static_cast<size_t>(k) + 5003]); };
  const auto named = [&](const std::string& name) { return Keep(new char[name.size() + 5004]); };
  twice(n - 1);
  named("");
}

template <typename Visitor>
void Visit(int count, Visitor visitor) {
  for (int i = 0; i < count; ++i) visitor(i);
}

class Worker {
 public:
  void Run() { Step(&Worker::First); Step(&Worker::Second); }

 private:
  void Step(void (Worker::*step)()) { (this->*step)(); }
  void First() { state_ = Keep(new Blob<5005>); }
  void Second() { state_ = Keep(pool_.Make()); Keep(pool_.MakeOther<Blob<5007>>()); }
  Pool<Blob<5006>> pool_;
  void* state_ = nullptr;
};

inline char* Inner(size_t bytes) { return Keep(new char[bytes]); }
inline char* Middle(size_t bytes) { return Inner(bytes); }
inline char* Outer(size_t bytes) { return Middle(bytes); }

char* AtTheEnd(size_t bytes) { return new char[bytes]; }
char* ByWayOf(size_t bytes) { return AtTheEnd(bytes); }

void Compare(std::vector<int>* numbers) {
  std::sort(numbers->begin(), numbers->end(), [](int a, int b) {
    static bool first = true;
    if (first) Keep(new Blob<5013>);
    first = false;
    return a < b;
  });
}

int Fibonacci(int n) {
  if (n == 3) Keep(new Blob<5014>);
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}

struct Visitor {
  void operator()(int i) { Keep(new char[static_cast<size_t>(i) * 0 + 5015]); }
};

struct Money {
  explicit operator std::string() const { return std::string(5016, '$'); }
};

thread_local std::string* t_name;

}  // namespace

void RunAll() {
  Submit([](int n) { Keep(new char[static_cast<size_t>(n) + 5008]); });
  Submit([big = Blob<5010>()](int) { Keep(const_cast<char*>(big.bytes)); });
  Submit(Work);
  Drain();
  Visit(1, [](int) { Keep(new Blob<5011>); });
  Visit(1, Visitor());
  Worker().Run();
  Outer(5012);
  Keep(ByWayOf(5018));
  std::vector<int> numbers = {3, 1, 2};
  Compare(&numbers);
  Fibonacci(6);
  Keep(new std::string(Money()));
  std::thread([] {
    t_name = Keep(new std::string(5019, 't'));
    Work(2);
  }).join();
  Keep(std::make_shared<Blob<5021>>().get());
  static auto* shared = new std::shared_ptr<Blob<5121>>(std::make_shared<Blob<5121>>());
  Keep(shared);
}

}  // namespace jobs
