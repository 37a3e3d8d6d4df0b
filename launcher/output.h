// The output of the PEs, forwarded by whole lines. Threads: one, which never blocks on a slow reader. While stdout or
// stderr takes no more, the PEs that write to it are not read: memory stays bounded.
//
//     pipe of a PE -> Stream (at most one unfinished line) -> Sink (bytes not yet written) -> stdout or stderr
//
// Invariants: a Sink's output changes from one stream to another only after a newline, which is added where a line was
// cut or ended without. Nothing is read while a Sink holds unwritten bytes. At most 1 MiB is held for a stream, and one
// read for a Sink. Cost of a byte: one read, one write, one search for newlines.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::launcher {

constexpr size_t kLongestLine = 1 << 20;  // a longer line is forwarded in pieces

// The read end of a PE's stdout or stderr.
struct Stream {
    int fd = -1;  // -1 when it has ended
    std::string tag;
    std::string unfinished;
    uint64_t last_read_ns = 0;
};

// stdout or stderr of the launcher.
class Sink {
  public:
    // False with errno when the kernel refuses. terminal(), fd() and error() are valid after success.
    bool open(int fd);
    bool watch(Stream* stream);

    // True for a target that other descriptors may share, and that may take only some of the bytes.
    bool may_block() const { return mode_ != Mode::kDirect; }
    bool terminal() const { return terminal_; }
    int error() const { return error_; }  // of the write that failed; all later output is dropped

    // The event to poll for before the next work().
    pollfd interest() const;
    void work(uint64_t now_ns);
    // Reads what the stream has now.
    void drain(Stream* stream, uint64_t now_ns);
    // Forwards an unfinished line as it is.
    void show(Stream* stream);
    // Writes a whole line of the launcher itself.
    void say(std::string_view line);
    // True when the target has taken everything.
    bool flush();

  private:
    enum class Mode {
        kDirect,  // never blocks for long (file, device): written directly
        // A pipe or terminal, opened again: O_NONBLOCK then applies to this descriptor, not to all that share the file.
        kOwn,
        kCareful,  // a target that cannot be opened again: small writes, each after poll has reported room
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
    // The stream whose line is unfinished in the output; null: at the start of a line.
    const Stream* open_line_ = nullptr;
    std::string waiting_;  // accepted and not yet written, from waiting_from_ on
    size_t waiting_from_ = 0;
    std::string scratch_;  // lines with their tags
    std::vector<char> buffer_;
};

class Output {
  public:
    // False with errno when the kernel refuses.
    bool open(int pes, bool tag);
    bool add(int pe, int output_fd, int error_fd);

    // Fills two entries for poll.
    void interests(pollfd* two) const;
    void work(uint64_t now_ns);
    // When work is next due without an event; UINT64_MAX: never.
    uint64_t next_due_ns() const;

    // Reads what a PE that has ended left in its pipes.
    void drain(int pe, uint64_t now_ns);
    // Reads what all PEs left. To be repeated until it returns true: everything is written.
    bool drain_all(uint64_t now_ns);
    void say(std::string_view line) { errors_->say(line); }
    int error() const { return sinks_[0].error() ? sinks_[0].error() : sinks_[1].error(); }

  private:
    Sink* sink_of(size_t stream) { return stream % 2 ? errors_ : &sinks_[0]; }

    Sink sinks_[2];
    Sink* errors_ = &sinks_[1];    // the first sink when both are the same pipe or terminal
    std::vector<Stream> streams_;  // stdout and stderr of each PE in turn; never reallocated
};

}  // namespace heddle::launcher
