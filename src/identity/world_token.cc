#include "identity/world_token.h"

#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <set>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::identity {
namespace {

constexpr std::string_view kDescriptor = "fd:";
constexpr char kContext[crypto_kdf_CONTEXTBYTES + 1] = "hwsrtokn";

Status invalid(std::string text) {
  return Status(Code::kInvalid, "the world's token: " + std::move(text))
      .with_advice("make one by `head -c 32 /dev/urandom | base64 > FILE; chmod 600 FILE`");
}

/// Text that is wiped.
struct Secret {
  std::string text;
  ~Secret() { sodium_memzero(text.data(), text.size()); }
};

/// Waits until a read does not block. A pipe whose writer keeps it open would block for ever.
Status await_bytes(int fd, const std::string& source, Instant deadline) {
  pollfd one = {.fd = fd, .events = POLLIN, .revents = 0};
  for (;;) {
    const Duration left = std::max(deadline - Clock::steady().now(), Duration::zero());
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    const int ready = ::poll(&one, 1, static_cast<int>(ms));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return base::errno_status("the world's token: waiting for " + source, errno);
    if (ready < 0) continue;
    return Status(Code::kTimedOut, base::format("the world's token: {} did not come to its end within {} s", source,
                                                kTokenReadTime / std::chrono::seconds(1)))
        .with_advice("whoever writes the token must close the descriptor after it");
  }
}

Status read_all(int fd, const std::string& source, std::string& text) {
  const Instant deadline = Clock::steady().now() + kTokenReadTime;
  text.resize(kTokenMax + 1);
  std::size_t size = 0;
  while (size < text.size()) {
    HAWSER_TRY(await_bytes(fd, source, deadline));
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return base::errno_status("the world's token: reading " + source, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return {};
}

Result<base::Fd> open_file(const std::string& path) {
  base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) {
    return Status(Code::kNotFound, base::format("the world's token: there is no file {}", path))
        .with_advice("put the token there on each host, for this user alone");
  }
  if (!fd) return base::errno_status("the world's token: opening " + path, errno);
  struct stat facts = {};
  if (::fstat(fd.get(), &facts) != 0) return base::errno_status("the world's token: looking at " + path, errno);
  if (!S_ISREG(facts.st_mode)) return invalid(path + " is no file");
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Status(Code::kDenied,
                  base::format("the world's token: others may use {} (mode {:o})", path, facts.st_mode & 07777))
        .with_advice("chmod 600 " + path);
  }
  return fd;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Status check(std::string_view text) {
  if (text.size() < kTokenMin) {
    return invalid(base::format("{} characters; it needs {}, which hold 128 random bits", text.size(), kTokenMin));
  }
  if (text.size() > kTokenMax) return invalid(base::format("it has more than {} characters", kTokenMax));
  if (std::set<char>(text.begin(), text.end()).size() < kTokenVarietyMin) return invalid("it is not random");
  return {};
}

}  // namespace

TokenText TokenText::make() {
  constexpr std::size_t kRandomBytes = 32;
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::array<unsigned char, kRandomBytes> bytes;
  std::string text(sodium_base64_ENCODED_LEN(kRandomBytes, kVariant), '\0');
  do {
    randombytes_buf(bytes.data(), bytes.size());
    sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kVariant);
  } while (!check(std::string_view(text).substr(0, text.size() - 1)).ok());  // Never in practice.
  sodium_memzero(bytes.data(), bytes.size());
  text.pop_back();  // The zero at its end.
  return TokenText(std::move(text));
}

Result<TokenText> TokenText::read(const std::string& source) {
  Secret secret;
  if (source.starts_with(kDescriptor)) {
    int fd = -1;
    const char* const end = source.data() + source.size();
    const auto parsed = std::from_chars(source.data() + kDescriptor.size(), end, fd);
    if (parsed.ec != std::errc() || parsed.ptr != end || fd < 0) return invalid(source + " names no descriptor");
    HAWSER_TRY(read_all(fd, source, secret.text));
  } else {
    HAWSER_TRY_ASSIGN(const base::Fd fd, open_file(source));
    HAWSER_TRY(read_all(fd.get(), source, secret.text));
  }
  return parse(secret.text);
}

Result<TokenText> TokenText::parse(std::string_view text) {
  text = trimmed(text);
  HAWSER_TRY(check(text));
  return TokenText(std::string(text));
}

TokenText::~TokenText() { sodium_memzero(text_.data(), text_.size()); }

Result<WorldToken> WorldToken::read(const std::string& source) {
  HAWSER_TRY_ASSIGN(const TokenText text, TokenText::read(source));
  return parse(text.text());
}

Result<WorldToken> WorldToken::parse(std::string_view text) {
  text = trimmed(text);
  HAWSER_TRY(check(text));
  std::array<unsigned char, crypto_kdf_KEYBYTES> master;
  crypto_generichash(master.data(), master.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     nullptr, 0);
  WorldToken token;
  std::array<unsigned char, 16> admission;
  const auto derive = [&](std::uint64_t number, std::span<unsigned char> to) {
    crypto_kdf_derive_from_key(to.data(), to.size(), number, kContext, master.data());
  };
  derive(1, {reinterpret_cast<unsigned char*>(token.seed_key_.data()), token.seed_key_.size()});
  derive(2, admission);
  derive(3, {reinterpret_cast<unsigned char*>(token.mac_key_.data()), token.mac_key_.size()});
  std::memcpy(&token.admission_.hi, admission.data(), 8);
  std::memcpy(&token.admission_.lo, admission.data() + 8, 8);
  sodium_memzero(master.data(), master.size());
  sodium_memzero(admission.data(), admission.size());
  return token;
}

WorldToken::~WorldToken() {
  sodium_memzero(seed_key_.data(), seed_key_.size());
  sodium_memzero(mac_key_.data(), mac_key_.size());
  sodium_memzero(&admission_, sizeof admission_);
}

WorldToken::Mac WorldToken::prove(Role role, std::span<const std::byte> rank, std::span<const std::byte> seed) const {
  Mac mac;
  const auto* const key = reinterpret_cast<const unsigned char*>(mac_key_.data());
  crypto_generichash_state state;
  crypto_generichash_init(&state, key, mac_key_.size(), mac.size());
  const auto add = [&state](std::span<const std::byte> bytes) {
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  };
  const auto who = static_cast<std::byte>(role);
  add({&who, 1});
  add(rank);
  add(seed);
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(mac.data()), mac.size());
  return mac;
}

bool WorldToken::is_proof(std::span<const std::byte> mac, Role role, std::span<const std::byte> rank,
                          std::span<const std::byte> seed) const {
  const Mac right = prove(role, rank, seed);
  return mac.size() == right.size() && sodium_memcmp(mac.data(), right.data(), right.size()) == 0;
}

}  // namespace hawser::identity
