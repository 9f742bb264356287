#include "base/address.h"

#include <netinet/in.h>
#include <sys/un.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

namespace hawser::base {
namespace {

TEST(HostPort, ParsesAndFormats) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& c :
       {Case{"host:5000", "host", 5000}, Case{"10.0.0.1:0", "10.0.0.1", 0}, Case{"[::1]:65535", "::1", 65535},
        Case{"[fe80::1%eth0]:1", "fe80::1%eth0", 1}, Case{"my_service-1.example.:80", "my_service-1.example.", 80}}) {
    const Result<HostPort> parsed = parse_host_port(c.text);
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    EXPECT_EQ(parsed->host, c.host);
    EXPECT_EQ(parsed->port, c.port);
    EXPECT_EQ(to_string(*parsed), c.text);
  }
}

TEST(HostPort, WrongTextsAreToldHowToWriteIt) {
  struct Case {
    const char* text;
    const char* why;
  };
  for (const Case& c : {Case{"", "empty"},
                        Case{"host", "no port"},
                        Case{"host:", "no number"},
                        Case{"host:65536", "0 to 65535"},
                        Case{"host:-1", "no number"},
                        Case{"host:+1", "no number"},
                        Case{"host: 1", "no number"},
                        Case{"host:0x10", "no number"},
                        Case{":5000", "no host"},
                        Case{"::1", "[::1]:port"},
                        Case{"::1:5000", "brackets"},
                        Case{"fe80::1:2:5000", "brackets"},
                        Case{"[::1]", "no port after"},
                        Case{"[::1]5000", "no port after"},
                        Case{"[::1:5000", "not closed"},
                        Case{"[host]:5000", "only an IPv6"},
                        Case{"[]:1", "only an IPv6"},
                        Case{"[::1]:x", "no number"},
                        Case{"tcp://host:1", "scheme"},
                        Case{"a b:1", "character"},
                        Case{"a/b:1", "character"},
                        Case{"user@host:1", "character"}}) {
    const Result<HostPort> parsed = parse_host_port(c.text);
    ASSERT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error().code(), Code::kInvalid);
    EXPECT_NE(parsed.error().message().find(c.why), std::string::npos) << parsed.error().to_string();
    EXPECT_FALSE(parsed.error().advice().empty());
  }
  EXPECT_FALSE(parse_host_port(std::string(254, 'a') + ":1"));
  EXPECT_LT(parse_host_port(std::string(10'000, 'a')).error().message().size(), 500u);
}

TEST(SocketAddress, FromNumbersAndBack) {
  for (const char* text : {"10.1.2.3:80", "[::1]:5000", "[2001:db8::7]:0", "0.0.0.0:1", "[fe80::1%7000]:9"}) {
    const Result<SocketAddress> address = numeric_address(*parse_host_port(text));
    ASSERT_TRUE(address) << address.error().to_string();
    EXPECT_EQ(to_string(*address), text);
    EXPECT_EQ(address->port(), parse_host_port(text)->port);
    SocketAddress other = *address;
    other.set_port(1234);
    EXPECT_EQ(other.port(), 1234);
  }
  EXPECT_EQ(numeric_address({"host", 1}).error().code(), Code::kInvalid);
  EXPECT_EQ(numeric_address({"fe80::1%no-such-if", 1}).error().code(), Code::kNotFound);
  EXPECT_TRUE(is_numeric_host("::1"));
  EXPECT_FALSE(is_numeric_host("localhost"));
}

TEST(SocketAddress, Loopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(*numeric_address({host, 1}))) << host;
  }
  for (const char* host : {"10.0.0.1", "0.0.0.0", "128.0.0.1", "::", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(is_loopback(*numeric_address({host, 1}))) << host;
  }
}

SocketAddress unix_address(std::string_view path) {
  SocketAddress address;
  address.storage.ss_family = AF_UNIX;
  std::memcpy(reinterpret_cast<char*>(&address.storage) + offsetof(sockaddr_un, sun_path), path.data(), path.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  return address;
}

TEST(SocketAddress, UnixAndOthers) {
  EXPECT_EQ(to_string(unix_address({"/run/x\0", 7})), "unix:/run/x");
  EXPECT_EQ(to_string(unix_address("/run/x")), "unix:/run/x") << "the kernel need not end it";
  EXPECT_EQ(to_string(unix_address({"\0name", 5})), "unix:@name");
  EXPECT_EQ(to_string(unix_address("")), "unix:");
  EXPECT_TRUE(is_loopback(unix_address("/run/x")));
  EXPECT_EQ(unix_address("/x").port(), 0);
  EXPECT_EQ(to_string(SocketAddress()), "no address");
  SocketAddress packet;
  packet.storage.ss_family = 17;
  packet.size = sizeof(sockaddr_storage);
  EXPECT_EQ(to_string(packet), "family 17");
}

}  // namespace
}  // namespace hawser::base
