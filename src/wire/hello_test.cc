#include "wire/hello.h"

#include <gtest/gtest.h>

#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

Hello sample() {
  Hello hello;
  hello.security = 1;
  hello.driven = true;
  hello.stream = 2;
  hello.streams = 4;
  hello.incarnation = {0x0102030405060708, 0x090a0b0c0d0e0f10};
  hello.session = {0, 2};
  hello.token = {0, 3};
  hello.supersedes = {0, 4};
  hello.expects = {0, 5};
  hello.nonce = {0, 6};
  hello.born = 0x0807060504030201;
  hello.admission = Admission::kCard;
  hello.proof[0] = std::byte{0xcc};
  hello.proof[31] = std::byte{0xdd};
  hello.public_key[0] = std::byte{0xaa};
  hello.public_key[31] = std::byte{0xbb};
  hello.name = "prefill-0";
  hello.status = Code::kDenied;
  hello.reason = "closed";
  hello.listen = "[::1]:5000";
  return hello;
}

TEST(Hello, GoldenVector) {
  EXPECT_EQ(hex(encode(sample())),
            "48575352ce000200020001010204100f0e0d0c0b0a090807060504030201020000000000000000000000000000000300"
            "000000000000000000000000000004000000000000000000000000000000050000000000000000000000000000000600"
            "0000000000000000000000000000010203040506070801cc000000000000000000000000000000000000000000000000"
            "000000000000ddaa000000000000000000000000000000000000000000000000000000000000bb0970726566696c6c2d"
            "300906636c6f7365640a5b3a3a315d3a35303030");
}

TEST(Hello, RoundTrip) {
  const Hello sent = sample();
  const std::string bytes = encode(sent);
  const Result<std::size_t> size = hello_size(base::as_bytes(bytes).first(kHelloPrefix));
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, bytes.size());
  const Result<Hello> got = decode_hello(base::as_bytes(bytes));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->version_min, kVersionMin);
  EXPECT_EQ(got->version_max, kVersionMax);
  EXPECT_EQ(got->security, 1);
  EXPECT_TRUE(got->driven);
  EXPECT_EQ(got->stream, 2);
  EXPECT_EQ(got->streams, 4);
  EXPECT_EQ(got->incarnation, sent.incarnation);
  EXPECT_EQ(got->session, sent.session);
  EXPECT_EQ(got->token, sent.token);
  EXPECT_EQ(got->supersedes, sent.supersedes);
  EXPECT_EQ(got->expects, sent.expects);
  EXPECT_EQ(got->nonce, sent.nonce);
  EXPECT_EQ(got->born, sent.born);
  EXPECT_EQ(got->admission, Admission::kCard);
  EXPECT_EQ(got->proof, sent.proof);
  EXPECT_EQ(got->public_key, sent.public_key);
  EXPECT_EQ(got->name, "prefill-0");
  EXPECT_EQ(got->status, Code::kDenied);
  EXPECT_EQ(got->reason, "closed");
  EXPECT_EQ(got->listen, sent.listen);
}

TEST(Hello, TheProofStandsWhereItIsSaidTo) {
  const Hello hello = sample();
  const std::string bytes = encode(hello);
  const auto proof = base::as_bytes(bytes).subspan(kHelloProofAt, hello.proof.size());
  EXPECT_TRUE(std::equal(proof.begin(), proof.end(), hello.proof.begin()));
}

TEST(Hello, TheLongestFits) {
  Hello hello = sample();
  hello.name.assign(255, 'n');
  hello.reason.assign(5000, 'r');
  hello.listen.assign(255, 'l');
  const std::string bytes = encode(hello);
  EXPECT_LE(bytes.size(), kHelloSizeMax);
  const Result<Hello> got = decode_hello(base::as_bytes(bytes));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->name, hello.name);
  EXPECT_EQ(got->reason, std::string(256, 'r'));
  EXPECT_EQ(got->listen, hello.listen);
  hello.listen += 'l';  // Half a place would lead elsewhere.
  EXPECT_EQ(decode_hello(base::as_bytes(encode(hello)))->listen, "");
}

TEST(Hello, ATailOfANewerFormIsSkipped) {
  std::string bytes = encode(sample()) + "more";
  bytes[4] = static_cast<char>(bytes[4] + 4);
  const Result<Hello> got = decode_hello(base::as_bytes(bytes));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->reason, "closed");
}

TEST(Hello, EveryCutIsCorrupt) {
  const std::string good = encode(sample());
  feed_every_cut(good, [](auto bytes) {
    const Result<Hello> got = decode_hello(bytes);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), Code::kCorrupt);
    // With a size that fits the cut, the fields themselves run out.
    if (bytes.size() < kHelloPrefix + 4) return;
    std::string patched(base::as_text(bytes));
    base::store_little_endian(patched.data() + 4, static_cast<std::uint16_t>(patched.size() - kHelloPrefix));
    feed(patched, [](auto again) { EXPECT_EQ(decode_hello(again).error().code(), Code::kCorrupt); });
  });
}

TEST(Hello, GarbageIsAnswered) {
  feed_garbage(encode(sample()), 20000, [](auto bytes) {
    const Result<Hello> got = decode_hello(bytes);
    if (!got) return;
    EXPECT_EQ(decode_hello(base::as_bytes(encode(*got))).value().name, got->name);
  });
}

TEST(Hello, WrongPrefixes) {
  EXPECT_EQ(hello_size({}).error().code(), Code::kCorrupt);
  EXPECT_EQ(hello_size(base::as_bytes("HTTP/1")).error().code(), Code::kCorrupt);
  EXPECT_EQ(hello_size(base::as_bytes(std::string_view("HWSR\x03\x00", 6))).error().code(), Code::kCorrupt);
  EXPECT_EQ(hello_size(base::as_bytes(std::string_view("HWSR\xff\xff", 6))).error().code(), Code::kCorrupt);
  EXPECT_EQ(hello_size(base::as_bytes(std::string_view("HWSR\x04\x00", 6))).value(), 10u);
  EXPECT_EQ(hello_size(base::as_bytes(std::string_view("HWSR\xfa\x03", 6))).value(), kHelloSizeMax);
  EXPECT_EQ(hello_size(base::as_bytes(std::string_view("HWSR\xfb\x03", 6))).error().code(), Code::kCorrupt);
}

TEST(Hello, SenselessValuesAreCorrupt) {
  const auto code_of = [](auto change) {
    Hello hello = sample();
    change(hello);
    return decode_hello(base::as_bytes(encode(hello))).error().code();
  };
  EXPECT_EQ(code_of([](Hello& h) { h.security = 3; }), Code::kCorrupt);
  EXPECT_EQ(code_of([](Hello& h) { h.stream = 4; }), Code::kCorrupt);
  for (std::size_t link = 0; link < kLinks; ++link) {
    const auto stream = static_cast<std::uint8_t>(kLinkStreamFirst + link);
    EXPECT_EQ(code_of([&](Hello& h) { h.stream = stream; }), Code::kOk);
    EXPECT_EQ(code_of([&](Hello& h) { h.stream = stream, h.streams = 1; }), Code::kCorrupt);
  }
  EXPECT_EQ(code_of([](Hello& h) { h.stream = kLinkStreamFirst + kLinks; }), Code::kCorrupt);
  EXPECT_EQ(code_of([](Hello& h) { h.streams = 0; }), Code::kCorrupt);
  EXPECT_EQ(code_of([](Hello& h) { h.status = static_cast<Code>(11); }), Code::kCorrupt);
  EXPECT_EQ(code_of([](Hello& h) { h.version_min = 0; }), Code::kCorrupt);
  EXPECT_EQ(code_of([](Hello& h) { h.admission = static_cast<Admission>(6); }), Code::kCorrupt);
  EXPECT_EQ(code_of([](Hello& h) { h.admission = Admission::kIdentity; }), Code::kOk);
  std::string bytes = encode(sample());
  bytes[bytes.find("prefill")] = '\n';
  EXPECT_EQ(decode_hello(base::as_bytes(bytes)).error().code(), Code::kCorrupt);
}

TEST(Hello, AnotherAgeIsUnsupportedWhateverItsBody) {
  const std::string bytes("HWSR\x06\x00\x07\x00\x09\x00zz", 12);
  const Status fault = decode_hello(base::as_bytes(bytes)).error();
  EXPECT_EQ(fault.code(), Code::kUnsupported);
  EXPECT_NE(fault.message().find("7 to 9"), std::string_view::npos) << fault.to_string();
}

TEST(Hello, VersionOneIsRefusedByName) {
  // A whole hello of version 1, as agents of that age send it.
  const std::string bytes("HWSR\x06\x00\x01\x00\x01\x00zz", 12);
  const Status fault = decode_hello(base::as_bytes(bytes)).error();
  EXPECT_EQ(fault.code(), Code::kUnsupported);
  EXPECT_EQ(fault.message(), "the peer speaks wire versions 1 to 1, this agent 2 to 2");
  EXPECT_EQ(fault.advice(), "upgrade the peer to a release that speaks wire version 2");
}

TEST(Hello, VersionsAgreeOnTheHighestCommon) {
  const Versions ours = {2, 4};
  EXPECT_EQ(agree_version(ours, {3, 9}).value(), 4);
  EXPECT_EQ(agree_version({3, 9}, ours).value(), 4);
  EXPECT_EQ(agree_version(ours, {1, 2}).value(), 2);
  const Status fault = agree_version(ours, {5, 9}).error();
  EXPECT_EQ(fault.code(), Code::kUnsupported);
  EXPECT_EQ(fault.message(), "the peer speaks wire versions 5 to 9, this agent 2 to 4");
  EXPECT_EQ(fault.advice(), "upgrade this agent to a release that speaks wire version 5");
  EXPECT_EQ(agree_version(ours, {1, 1}).error().advice(), "upgrade the peer to a release that speaks wire version 2");
}

TEST(Hello, ARangeThatOverlapsIsRead) {
  Hello hello = sample();
  hello.version_min = 2, hello.version_max = 3;
  const std::string bytes = encode(hello);
  EXPECT_EQ(decode_hello(base::as_bytes(bytes), {1, 2}).value().version_max, 3);
  EXPECT_EQ(decode_hello(base::as_bytes(bytes), {3, 7}).value().name, hello.name);
  for (const Versions& ours : {Versions{1, 1}, Versions{4, 4}}) {
    EXPECT_EQ(decode_hello(base::as_bytes(bytes), ours).error().code(), Code::kUnsupported);
  }
}

}  // namespace
}  // namespace hawser::wire
