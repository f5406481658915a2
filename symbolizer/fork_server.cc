#include "symbolizer/fork_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <new>
#include <utility>

namespace memtrace::symbolizer {
namespace {

using std::chrono::milliseconds;

// Both ways: this, then so many bytes.
struct QuestionHead {
  uint64_t work, milliseconds, most_bytes, bytes;
};
struct AnswerHead {
  uint64_t given, bytes;  // of the answer, or of why there is none
};

bool Send(int socket, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool Receive(int socket, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t n = recv(socket, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// Where the caller has closed its standard output, that must stay closed.
bool LeaveStandardDescriptors(int (&ends)[2]) {
  for (int& end : ends) {
    if (end > STDERR_FILENO) continue;
    const int higher = fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (higher < 0) return false;
    close(std::exchange(end, higher));
  }
  return true;
}

}  // namespace

void ForkServer::Start() {
  if (running()) return;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  if (!LeaveStandardDescriptors(ends)) {
    for (const int end : ends) close(end);
    return;
  }
  const pid_t owner = getpid(), server = fork();
  if (server == 0) {
    close(ends[0]);
    Serve(ends[1], owner);
  }
  close(ends[1]);
  if (server < 0) {
    close(ends[0]);
    return;
  }
  socket_ = ends[0];
  pid_ = server;
}

void ForkServer::Serve(int socket, pid_t owner) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner) _exit(0);
  signal(SIGINT, SIG_IGN);
  // Who waits for the end of the owner's output must not wait for us.
  if (const int null = open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
  }
  std::string question;
  for (QuestionHead head; Receive(socket, &head, sizeof(head));) {
    ChildAnswer answer;
    try {
      question.resize(head.bytes);
      if (!Receive(socket, question.data(), question.size())) break;
      answer = AskChild(milliseconds(head.milliseconds), head.most_bytes,
                        [&] { return works_[head.work](question); });
    } catch (const std::bad_alloc&) {
      break;  // the owner asks by itself then
    }
    const std::string& text = answer.given ? answer.bytes : answer.why_not;
    const AnswerHead reply = {answer.given ? 1u : 0u, text.size()};
    if (!Send(socket, &reply, sizeof(reply)) || !Send(socket, text.data(), text.size())) break;
  }
  _exit(0);
}

bool ForkServer::AskServer(size_t work, std::string_view question, milliseconds time,
                        size_t most_bytes, ChildAnswer* answer) {
  const QuestionHead head = {work, static_cast<uint64_t>(time.count()), most_bytes,
                             question.size()};
  AnswerHead reply;
  if (!Send(socket_, &head, sizeof(head)) || !Send(socket_, question.data(), question.size()) ||
      !Receive(socket_, &reply, sizeof(reply)) || (reply.given != 0 && reply.bytes > most_bytes)) {
    return false;
  }
  answer->given = reply.given != 0;
  std::string& text = answer->given ? answer->bytes : answer->why_not;
  text.resize(reply.bytes);
  return Receive(socket_, text.data(), text.size());
}

ChildAnswer ForkServer::Ask(size_t work, std::string_view question, milliseconds time,
                           size_t most_bytes) {
  ChildAnswer answer;
  if (running()) {
    if (AskServer(work, question, time, most_bytes, &answer)) return answer;
    Stop();
  }
  return AskChild(time, most_bytes, [&] { return works_[work](question); });
}

void ForkServer::Stop() {
  if (!running()) return;
  close(std::exchange(socket_, -1));
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

}  // namespace memtrace::symbolizer
