// What the PEs print, forwarded by whole lines. One thread; never blocks on a slow reader: while stdout or stderr takes
// no more, the PEs that write to it are not read, so that memory stays bounded and the launcher stays awake.
//
//     pipe of a PE -> Stream (at most one unfinished line) -> Sink (bytes not yet written) -> stdout or stderr
//
// Invariants: a Sink's output changes from one stream to another only after a newline (one is added where a line was
// cut, or ended without); nothing is read while a Sink holds unwritten bytes. Per stream at most 1 MiB is held, per
// Sink one read. Cost per byte: one read, one write, one search for newlines.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::launcher {

constexpr size_t kLongestLine = 1 << 20;  // a longer one is forwarded in pieces

// The read end of a PE's stdout or stderr.
struct Stream {
    int fd = -1;  // -1 once it has ended
    std::string tag;
    std::string unfinished;
    uint64_t last_read_ns = 0;
};

// stdout or stderr of the launcher.
class Sink {
  public:
    // False with errno when the kernel refuses. terminal(), fd() and error() are valid after it.
    bool open(int fd);
    bool watch(Stream* stream);

    // True when the target is one that other descriptors may share and that may take bytes in part.
    bool may_block() const { return mode_ != Mode::kDirect; }
    bool terminal() const { return terminal_; }
    int error() const { return error_; }  // errno of the write that failed; everything later is dropped

    // What to poll for before the next work().
    pollfd interest() const;
    void work(uint64_t now_ns);
    // Reads what this stream has now.
    void drain(Stream* stream, uint64_t now_ns);
    // Forwards an unfinished line as it is.
    void show(Stream* stream);
    // A whole line of the launcher itself.
    void say(std::string_view line);
    // True when the target has taken everything.
    bool flush();

  private:
    enum class Mode {
        kDirect,  // never blocks for long (file, device): written as it comes
        kOwn,  // a pipe or terminal, opened again, so that O_NONBLOCK is ours alone and not that of everybody who has
               // it
        kCareful,  // one that cannot be opened again: small writes, each after poll has said that there is room
    };

    bool read_some(Stream* stream, uint64_t now_ns);
    void end(Stream* stream);
    void forward(const Stream* from, std::string_view first, std::string_view second);
    void tag_lines(const Stream* from, std::string_view text, bool* at_start);
    void put(std::string_view bytes);
    size_t write_some(std::string_view bytes);

    int fd_ = -1;
    int epoll_ = -1;
    Mode mode_ = Mode::kDirect;
    bool terminal_ = false;
    int error_ = 0;
    const Stream* open_line_ = nullptr;  // whose line the output is in the middle of; null: at the start of a line
    std::string waiting_;                // accepted and not written, from waiting_from_ on
    size_t waiting_from_ = 0;
    std::string scratch_;  // lines with their tags
    std::vector<char> buffer_;
};

class Output {
  public:
    // False with errno when the kernel refuses.
    bool open(int pes, bool tag);
    bool add(int pe, int output_fd, int error_fd);

    // Two entries for poll.
    void interests(pollfd* two) const;
    void work(uint64_t now_ns);
    // When work is next due without any event; UINT64_MAX: never.
    uint64_t next_due_ns() const;

    // Reads what a PE that has died left in its pipes.
    void drain(int pe, uint64_t now_ns);
    // Reads what all left; call it until it returns true: everything is written.
    bool drain_all(uint64_t now_ns);
    void say(std::string_view line) { errors_->say(line); }
    int error() const { return sinks_[0].error() ? sinks_[0].error() : sinks_[1].error(); }

  private:
    Sink* sink_of(size_t stream) { return stream % 2 ? errors_ : &sinks_[0]; }

    Sink sinks_[2];
    Sink* errors_ = &sinks_[1];    // the first where both are the same pipe or terminal
    std::vector<Stream> streams_;  // stdout and stderr of each PE in turn; never moves
};

}  // namespace heddle::launcher
