// UniqueFd: a file descriptor that closes itself.

#ifndef MEMTRACE_REPORT_BASE_UNIQUE_FD_H_
#define MEMTRACE_REPORT_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace memtrace::report {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Close(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_BASE_UNIQUE_FD_H_
